// Power iteration: a matrix whose rows the ranks share is applied until the vector changes little, at most as often as
// an argument says. What decides is all-reduced; what comes of it decides once more behind the loop.
ncclx.grid @g ["x" = 4]

func.func @f(%rows: tensor<2x8xf32>, %start: tensor<8xf32>, %most: tensor<1xi32> {ncclx.uniform}) -> (tensor<8xf32>, tensor<1xi32>, tensor<1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-3 : f32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %limit = arith.constant 40 : i32
  %m = tensor.extract %most[%c0] : tensor<1xi32>
  %turns = arith.remui %m, %limit : i32
  // All ranks begin with rank 0's vector.
  %x0 = ncclx.broadcast %start root [0] over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  %r:3 = scf.while (%x = %x0, %k = %none, %d = %eps) : (tensor<8xf32>, i32, f32) -> (tensor<8xf32>, i32, f32) {
    %left = arith.cmpi slt, %k, %turns : i32
    %far = arith.cmpf oge, %d, %eps : f32
    %go = arith.andi %left, %far : i1
    scf.condition(%go) %x, %k, %d : tensor<8xf32>, i32, f32
  } do {
  ^bb0(%x: tensor<8xf32>, %k: i32, %d: f32):
    %e2 = tensor.empty() : tensor<2xf32>
    %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
    %part = linalg.matvec ins(%rows, %x : tensor<2x8xf32>, tensor<8xf32>) outs(%z2 : tensor<2xf32>) -> tensor<2xf32>
    %y = ncclx.all_gather %part dim 0 over @g["x"] : tensor<2xf32> -> tensor<8xf32>
    // The largest part of each rank's share, and of all.
    %bound = tensor.from_elements %zero : tensor<1xf32>
    %own = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (0)>], iterator_types = ["reduction"]}
        ins(%part : tensor<2xf32>) outs(%bound : tensor<1xf32>) {
    ^bb0(%v: f32, %acc: f32):
      %abs = math.absf %v : f32
      %max = arith.maximumf %abs, %acc : f32
      linalg.yield %max : f32
    } -> tensor<1xf32>
    %norm = ncclx.all_reduce %own max accumulate f32 order any over @g["x"] : tensor<1xf32> -> tensor<1xf32>
    %n = tensor.extract %norm[%c0] : tensor<1xf32>
    %e8 = tensor.empty() : tensor<8xf32>
    %next = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%y : tensor<8xf32>) outs(%e8 : tensor<8xf32>) {
    ^bb0(%v: f32, %out: f32):
      %q = arith.divf %v, %n : f32
      linalg.yield %q : f32
    } -> tensor<8xf32>
    %far = tensor.from_elements %zero : tensor<f32>
    %change = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
        ins(%next, %x : tensor<8xf32>, tensor<8xf32>) outs(%far : tensor<f32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %s = arith.subf %a, %b : f32
      %abs = math.absf %s : f32
      %max = arith.maximumf %abs, %acc : f32
      linalg.yield %max : f32
    } -> tensor<f32>
    %step = tensor.extract %change[] : tensor<f32>
    %k1 = arith.addi %k, %one : i32
    scf.yield %next, %k1, %step : tensor<8xf32>, i32, f32
  }
  // Where it has come to an end, the ranks' shares are summed; else they are not.
  %settled = arith.cmpf olt, %r#2, %eps : f32
  %d1 = tensor.from_elements %r#2 : tensor<1xf32>
  %sum = scf.if %settled -> tensor<1xf32> {
    %s = ncclx.all_reduce %d1 sum accumulate f32 order any over @g["x"] : tensor<1xf32> -> tensor<1xf32>
    scf.yield %s : tensor<1xf32>
  } else {
    scf.yield %d1 : tensor<1xf32>
  }
  %k1 = tensor.from_elements %r#1 : tensor<1xi32>
  return %r#0, %k1, %sum : tensor<8xf32>, tensor<1xi32>, tensor<1xf32>
}
