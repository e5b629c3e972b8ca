// The verifier says what is wrong with a machine, and where.
// RUN: ncclx-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{topology at links[0]: 'to' names node 'gpu9', which is not among 'nodes' [unknown-name]}}
module attributes {ncclx.topology = #ncclx.topology<{nodes = [{name = "gpu0", kind = "gpu", rank = 0}], links = [{from = "gpu0", to = "gpu9", kind = "nvlink", raw = 5}]}>} {}

// -----

// expected-error @+1 {{topology at ranks: the topology has no rank [no-ranks]}}
module attributes {ncclx.topology = #ncclx.topology<{}>} {}

// -----

// expected-error @+1 {{topology: holds an attribute that is no string, whole number, flag, array or dictionary: 1.500000e+00 : f64 [type]}}
module attributes {ncclx.topology = #ncclx.topology<{version = 1.5}>} {}

// -----

// expected-error @+1 {{topology at nodes[0]: 'rank' must be a whole number from 0 to 16777216, found -1 [type]}}
module attributes {ncclx.topology = #ncclx.topology<{nodes = [{name = "g", kind = "gpu", rank = -1}]}>} {}

// -----

// expected-error @+1 {{"ncclx.topology" must be an #ncclx.topology, but is "h200x8.xml"}}
module attributes {ncclx.topology = "h200x8.xml"} {}

// -----

// expected-error @+1 {{has "ncclx.topology", but only modules may}}
func.func private @f() attributes {ncclx.topology = #ncclx.topology<{nodes = [{name = "g", kind = "gpu", rank = 0}]}>}

// -----

ncclx.grid @g ["x" = 2]
func.func @trees_t2_words(%a: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has ncclx.trees with lanes = 0 : i64, expected an i64 from 1 to 1048576}}
  %r = ncclx.all_gather %a dim 0 over @g["x"] algorithm trees {ncclx.trees = {lanes = 0 : i64}} : tensor<4xf32> -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// expected-error @+1 {{has ncclx.trees, but only collectives may}}
func.func private @trees_t1() attributes {ncclx.trees = {lanes = 4 : i64}}
