// RUN: ncclx-opt %s --ncclx-materialize-destinations --ncclx-expand-futures --split-input-file --verify-diagnostics

ncclx.grid @g ["tp" = 4]
func.func @meeting_futures_read_different_types(%a: tensor<4xf32>, %b: tensor<3xf32>, %p: i1 {ncclx.uniform}) -> tensor<12xf32> {
  %0 = scf.if %p -> !ncclx.future<tensor<12xf32>> {
    // expected-error @+1 {{reads 'tensor<3xf32>', but its future meets one of a collective that reads 'tensor<12xf32>'}}
    %f = ncclx.start {
      %r = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<3xf32> -> tensor<12xf32>
      ncclx.yield %r : tensor<12xf32>
    } : !ncclx.future<tensor<12xf32>>
    scf.yield %f : !ncclx.future<tensor<12xf32>>
  } else {
    %w = tensor.empty() : tensor<12xf32>
    // expected-note @+1 {{started here}}
    %f = ncclx.start {
      %r = ncclx.permute %w shift 1 over @g["tp"] : tensor<12xf32> -> tensor<12xf32>
      ncclx.yield %r : tensor<12xf32>
    } : !ncclx.future<tensor<12xf32>>
    scf.yield %f : !ncclx.future<tensor<12xf32>>
  }
  %v = ncclx.await %0 : !ncclx.future<tensor<12xf32>> -> tensor<12xf32>
  return %v : tensor<12xf32>
}
