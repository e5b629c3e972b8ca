// Heat in a periodic box, by explicit steps of a 7-point stencil. Each of 2 x 2 x 2 ranks holds a cube of it; a step needs one
// layer of each of the six neighbours.
ncclx.grid @g ["z" = 2, "y" = 2, "x" = 2]

func.func @steps(%field: tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %kappa = arith.constant 0.125 : f32
  %six = arith.constant 6.0 : f32
  %end = scf.for %i = %c0 to %c2 step %c1 iter_args(%f = %field) -> (tensor<64x64x64xf32>) {
    // The last layer goes to the rank behind, who has it in front of its first; and the first the other way.
    %z.last = tensor.extract_slice %f[63, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<64x64x64xf32> to tensor<1x64x64xf32>
    %z.first = tensor.extract_slice %f[0, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<64x64x64xf32> to tensor<1x64x64xf32>
    %z.before = ncclx.permute %z.last shift 1 over @g["z"] : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
    %z.behind = ncclx.permute %z.first shift -1 over @g["z"] : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
    %y.last = tensor.extract_slice %f[0, 63, 0] [64, 1, 64] [1, 1, 1] : tensor<64x64x64xf32> to tensor<64x1x64xf32>
    %y.first = tensor.extract_slice %f[0, 0, 0] [64, 1, 64] [1, 1, 1] : tensor<64x64x64xf32> to tensor<64x1x64xf32>
    %y.before = ncclx.permute %y.last shift 1 over @g["y"] : tensor<64x1x64xf32> -> tensor<64x1x64xf32>
    %y.behind = ncclx.permute %y.first shift -1 over @g["y"] : tensor<64x1x64xf32> -> tensor<64x1x64xf32>
    %x.last = tensor.extract_slice %f[0, 0, 63] [64, 64, 1] [1, 1, 1] : tensor<64x64x64xf32> to tensor<64x64x1xf32>
    %x.first = tensor.extract_slice %f[0, 0, 0] [64, 64, 1] [1, 1, 1] : tensor<64x64x64xf32> to tensor<64x64x1xf32>
    %x.before = ncclx.permute %x.last shift 1 over @g["x"] : tensor<64x64x1xf32> -> tensor<64x64x1xf32>
    %x.behind = ncclx.permute %x.first shift -1 over @g["x"] : tensor<64x64x1xf32> -> tensor<64x64x1xf32>
    %e = tensor.empty() : tensor<66x66x66xf32>
    %p0 = tensor.insert_slice %f into %e[1, 1, 1] [64, 64, 64] [1, 1, 1] : tensor<64x64x64xf32> into tensor<66x66x66xf32>
    %p1 = tensor.insert_slice %z.before into %p0[0, 1, 1] [1, 64, 64] [1, 1, 1] : tensor<1x64x64xf32> into tensor<66x66x66xf32>
    %p2 = tensor.insert_slice %z.behind into %p1[65, 1, 1] [1, 64, 64] [1, 1, 1] : tensor<1x64x64xf32> into tensor<66x66x66xf32>
    %p3 = tensor.insert_slice %y.before into %p2[1, 0, 1] [64, 1, 64] [1, 1, 1] : tensor<64x1x64xf32> into tensor<66x66x66xf32>
    %p4 = tensor.insert_slice %y.behind into %p3[1, 65, 1] [64, 1, 64] [1, 1, 1] : tensor<64x1x64xf32> into tensor<66x66x66xf32>
    %p5 = tensor.insert_slice %x.before into %p4[1, 1, 0] [64, 64, 1] [1, 1, 1] : tensor<64x64x1xf32> into tensor<66x66x66xf32>
    %p6 = tensor.insert_slice %x.behind into %p5[1, 1, 65] [64, 64, 1] [1, 1, 1] : tensor<64x64x1xf32> into tensor<66x66x66xf32>
    %zm = tensor.extract_slice %p6[0, 1, 1] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %zp = tensor.extract_slice %p6[2, 1, 1] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %ym = tensor.extract_slice %p6[1, 0, 1] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %yp = tensor.extract_slice %p6[1, 2, 1] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %xm = tensor.extract_slice %p6[1, 1, 0] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %xp = tensor.extract_slice %p6[1, 1, 2] [64, 64, 64] [1, 1, 1] : tensor<66x66x66xf32> to tensor<64x64x64xf32>
    %new = tensor.empty() : tensor<64x64x64xf32>
    %next = linalg.map ins(%f, %zm, %zp, %ym, %yp, %xm, %xp : tensor<64x64x64xf32>, tensor<64x64x64xf32>, tensor<64x64x64xf32>, tensor<64x64x64xf32>, tensor<64x64x64xf32>, tensor<64x64x64xf32>, tensor<64x64x64xf32>) outs(%new : tensor<64x64x64xf32>)
      (%c: f32, %zm0: f32, %zp0: f32, %ym0: f32, %yp0: f32, %xm0: f32, %xp0: f32, %o: f32) {
        %a = arith.addf %zm0, %zp0 : f32
        %b = arith.addf %ym0, %yp0 : f32
        %d = arith.addf %xm0, %xp0 : f32
        %ab = arith.addf %a, %b : f32
        %abd = arith.addf %ab, %d : f32
        %c6 = arith.mulf %six, %c : f32
        %rest = arith.subf %abd, %c6 : f32
        %flow = arith.mulf %kappa, %rest : f32
        %sum = arith.addf %c, %flow : f32
        linalg.yield %sum : f32
      }
    scf.yield %next : tensor<64x64x64xf32>
  }
  return %end : tensor<64x64x64xf32>
}
