// RUN: ncclx-opt %s --ncclx-split-branches=max-branches=2 --split-input-file --verify-diagnostics

ncclx.grid @g ["x" = 4]
// expected-error @below {{has more than 2 ways through its branches that communicate}}
func.func @many(%p: i1 {ncclx.uniform}, %q: i1 {ncclx.uniform}) {
  scf.if %p {
    ncclx.barrier over @g["x"]
  }
  scf.if %q {
    ncclx.barrier over @g["x"]
  }
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func private @taken.1()
// expected-error @below {{one of which is to be 'taken.1', but the module has another of that name}}
func.func @taken(%p: i1 {ncclx.uniform}) {
  scf.if %p {
    ncclx.barrier over @g["x"]
  }
  return
}

// -----

// expected-error @below {{has ncclx.branches, but only functions choose}}
module attributes {ncclx.branches = [@a, @b]} {
}

// -----

// expected-error @below {{expected at least two symbols}}
func.func private @branches_b1_one() attributes {ncclx.branches = [@a]}
