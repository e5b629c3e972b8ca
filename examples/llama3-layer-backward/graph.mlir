// One Llama-3 layer's backward pass under tensor parallelism 8 with sequence parallelism, one program for
// all ranks: 4 all-gathers and 2 reduce-scatters of activations, 2 all-reduces of norm gradients.
// Proportions are those of the 8B model (f = 3.5 h, 4 query heads for each key-value head); the widths
// are scaled so that eight processes on two cores run it in seconds:
// tokens S = 256, hidden h = 512, ffn f = 1792, heads 32 of 16, key-value heads 8.
// Names follow the usual op list: B1 to B18, from the gradient of the layer's output to that of its
// input. Weights and activations are bf16; matrix products and sums accumulate in f32.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#h_ij = affine_map<(h, i, j) -> (h, i, j)>
#h_i = affine_map<(h, i, j) -> (h, i)>

ncclx.grid @g ["tp" = 8]

// Attention's backward, causal, 4 query heads on one key-value head, with RoPE's rotation left to the
// caller: an opaque kernel to the compiler, with this body on the host. It recomputes the scores.
func.func private @attention_backward(%q: tensor<4x256x16xbf16>, %k: tensor<256x16xbf16>, %v: tensor<256x16xbf16>, %dctx: tensor<256x64xbf16>) -> tensor<256x96xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -3.0e+38 : f32
  %scale = arith.constant 0.25 : f32
  %s.e = tensor.empty() : tensor<4x256x256xf32>
  %s.z = linalg.fill ins(%zero : f32) outs(%s.e : tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
  %scores = linalg.generic {indexing_maps = [affine_map<(h, i, j, d) -> (h, i, d)>, affine_map<(h, i, j, d) -> (j, d)>, affine_map<(h, i, j, d) -> (h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x256x16xbf16>, tensor<256x16xbf16>) outs(%s.z : tensor<4x256x256xf32>) {
    ^bb0(%a: bf16, %b: bf16, %acc: f32):
      %a32 = arith.extf %a : bf16 to f32
      %b32 = arith.extf %b : bf16 to f32
      %p = arith.mulf %a32, %b32 : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<4x256x256xf32>
  %m.e = tensor.empty() : tensor<4x256xf32>
  %m.z = linalg.fill ins(%low : f32) outs(%m.e : tensor<4x256xf32>) -> tensor<4x256xf32>
  %max = linalg.generic {indexing_maps = [#h_ij, #h_i], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<4x256x256xf32>) outs(%m.z : tensor<4x256xf32>) {
    ^bb0(%x: f32, %acc: f32):
      %i = linalg.index 1 : index
      %j = linalg.index 2 : index
      %seen = arith.cmpi sle, %j, %i : index
      %masked = arith.select %seen, %x, %low : f32
      %r = arith.maximumf %acc, %masked : f32
      linalg.yield %r : f32
  } -> tensor<4x256xf32>
  %e.e = tensor.empty() : tensor<4x256x256xf32>
  %exp = linalg.generic {indexing_maps = [#h_ij, #h_i, #h_ij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %max : tensor<4x256x256xf32>, tensor<4x256xf32>) outs(%e.e : tensor<4x256x256xf32>) {
    ^bb0(%x: f32, %mx: f32, %y: f32):
      %i = linalg.index 1 : index
      %j = linalg.index 2 : index
      %seen = arith.cmpi sle, %j, %i : index
      %d = arith.subf %x, %mx : f32
      %ds = arith.mulf %d, %scale : f32
      %ex = math.exp %ds : f32
      %r = arith.select %seen, %ex, %zero : f32
      linalg.yield %r : f32
  } -> tensor<4x256x256xf32>
  %t.e = tensor.empty() : tensor<4x256xf32>
  %t.z = linalg.fill ins(%zero : f32) outs(%t.e : tensor<4x256xf32>) -> tensor<4x256xf32>
  %total = linalg.generic {indexing_maps = [#h_ij, #h_i], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<4x256x256xf32>) outs(%t.z : tensor<4x256xf32>) {
    ^bb0(%x: f32, %acc: f32):
      %r = arith.addf %acc, %x : f32
      linalg.yield %r : f32
  } -> tensor<4x256xf32>
  // dP = dO V^T, delta = rowsum(P dP), dS = P (dP - delta) / sqrt(d)
  %dctx3 = tensor.expand_shape %dctx [[0], [1, 2]] output_shape [256, 4, 16] : tensor<256x64xbf16> into tensor<256x4x16xbf16>
  %dp.e = tensor.empty() : tensor<4x256x256xf32>
  %dp.z = linalg.fill ins(%zero : f32) outs(%dp.e : tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
  %dp = linalg.generic {indexing_maps = [affine_map<(h, i, j, d) -> (i, h, d)>, affine_map<(h, i, j, d) -> (j, d)>, affine_map<(h, i, j, d) -> (h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%dctx3, %v : tensor<256x4x16xbf16>, tensor<256x16xbf16>) outs(%dp.z : tensor<4x256x256xf32>) {
    ^bb0(%a: bf16, %b: bf16, %acc: f32):
      %a32 = arith.extf %a : bf16 to f32
      %b32 = arith.extf %b : bf16 to f32
      %p = arith.mulf %a32, %b32 : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<4x256x256xf32>
  %l.e = tensor.empty() : tensor<4x256xf32>
  %l.z = linalg.fill ins(%zero : f32) outs(%l.e : tensor<4x256xf32>) -> tensor<4x256xf32>
  %delta = linalg.generic {indexing_maps = [#h_ij, #h_ij, #h_i, #h_i], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp, %dp, %total : tensor<4x256x256xf32>, tensor<4x256x256xf32>, tensor<4x256xf32>) outs(%l.z : tensor<4x256xf32>) {
    ^bb0(%e: f32, %d: f32, %tt: f32, %acc: f32):
      %p = arith.divf %e, %tt : f32
      %pd = arith.mulf %p, %d : f32
      %r = arith.addf %acc, %pd : f32
      linalg.yield %r : f32
  } -> tensor<4x256xf32>
  %ds.e = tensor.empty() : tensor<4x256x256xf32>
  %ds = linalg.generic {indexing_maps = [#h_ij, #h_ij, #h_i, #h_i, #h_ij], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %dp, %total, %delta : tensor<4x256x256xf32>, tensor<4x256x256xf32>, tensor<4x256xf32>, tensor<4x256xf32>) outs(%ds.e : tensor<4x256x256xf32>) {
    ^bb0(%e: f32, %d: f32, %tt: f32, %dl: f32, %y: f32):
      %p = arith.divf %e, %tt : f32
      %c = arith.subf %d, %dl : f32
      %pc = arith.mulf %p, %c : f32
      %r = arith.mulf %pc, %scale : f32
      linalg.yield %r : f32
  } -> tensor<4x256x256xf32>
  // dQ = dS K; dK = dS^T Q and dV = P^T dO, summed over the heads that share them.
  %dq.e = tensor.empty() : tensor<256x4x16xf32>
  %dq.z = linalg.fill ins(%zero : f32) outs(%dq.e : tensor<256x4x16xf32>) -> tensor<256x4x16xf32>
  %dq = linalg.generic {indexing_maps = [affine_map<(i, h, d, j) -> (h, i, j)>, affine_map<(i, h, d, j) -> (j, d)>, affine_map<(i, h, d, j) -> (i, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%ds, %k : tensor<4x256x256xf32>, tensor<256x16xbf16>) outs(%dq.z : tensor<256x4x16xf32>) {
    ^bb0(%a: f32, %b: bf16, %acc: f32):
      %b32 = arith.extf %b : bf16 to f32
      %p = arith.mulf %a, %b32 : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<256x4x16xf32>
  %dk.e = tensor.empty() : tensor<256x16xf32>
  %dk.z = linalg.fill ins(%zero : f32) outs(%dk.e : tensor<256x16xf32>) -> tensor<256x16xf32>
  %dk = linalg.generic {indexing_maps = [affine_map<(j, d, h, i) -> (h, i, j)>, affine_map<(j, d, h, i) -> (h, i, d)>, affine_map<(j, d, h, i) -> (j, d)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%ds, %q : tensor<4x256x256xf32>, tensor<4x256x16xbf16>) outs(%dk.z : tensor<256x16xf32>) {
    ^bb0(%a: f32, %b: bf16, %acc: f32):
      %b32 = arith.extf %b : bf16 to f32
      %p = arith.mulf %a, %b32 : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<256x16xf32>
  %dv.e = tensor.empty() : tensor<256x16xf32>
  %dv.z = linalg.fill ins(%zero : f32) outs(%dv.e : tensor<256x16xf32>) -> tensor<256x16xf32>
  %dv = linalg.generic {indexing_maps = [affine_map<(j, d, h, i) -> (h, i, j)>, affine_map<(j, d, h, i) -> (h, i)>, affine_map<(j, d, h, i) -> (i, h, d)>, affine_map<(j, d, h, i) -> (j, d)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%exp, %total, %dctx3 : tensor<4x256x256xf32>, tensor<4x256xf32>, tensor<256x4x16xbf16>) outs(%dv.z : tensor<256x16xf32>) {
    ^bb0(%e: f32, %tt: f32, %b: bf16, %acc: f32):
      %w = arith.divf %e, %tt : f32
      %b32 = arith.extf %b : bf16 to f32
      %p = arith.mulf %w, %b32 : f32
      %r = arith.addf %acc, %p : f32
      linalg.yield %r : f32
  } -> tensor<256x16xf32>
  // [dQ | dK | dV], as the qkv projection's output was laid out.
  %dq2 = tensor.collapse_shape %dq [[0], [1, 2]] : tensor<256x4x16xf32> into tensor<256x64xf32>
  %all = tensor.empty() : tensor<256x96xf32>
  %all.q = tensor.insert_slice %dq2 into %all[0, 0] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x96xf32>
  %all.k = tensor.insert_slice %dk into %all.q[0, 64] [256, 16] [1, 1] : tensor<256x16xf32> into tensor<256x96xf32>
  %all.v = tensor.insert_slice %dv into %all.k[0, 80] [256, 16] [1, 1] : tensor<256x16xf32> into tensor<256x96xf32>
  %d.e = tensor.empty() : tensor<256x96xbf16>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%all.v : tensor<256x96xf32>) outs(%d.e : tensor<256x96xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  } -> tensor<256x96xbf16>
  return %d : tensor<256x96xbf16>
}

func.func @layer_backward(
    %dy2: tensor<32x512xbf16>,          // gradient of the layer's output, this rank's tokens
    %x2: tensor<32x512xbf16>, %ln2: tensor<32x512xbf16>, %rinv2: tensor<32xf32>, %gamma2: tensor<512xbf16>,   // second norm: input, output, 1/rms, weight
    %x1: tensor<32x512xbf16>, %ln1: tensor<32x512xbf16>, %rinv1: tensor<32xf32>, %gamma1: tensor<512xbf16>,   // first norm
    %act: tensor<256x224xbf16>, %gate: tensor<256x224xbf16>, %up: tensor<256x224xbf16>,
    %q: tensor<4x256x16xbf16>, %k: tensor<256x16xbf16>, %v: tensor<256x16xbf16>, %ctx: tensor<256x64xbf16>,
    %w_fc2: tensor<224x512xbf16>, %w_fc1: tensor<512x448xbf16>, %w_o: tensor<64x512xbf16>, %w_qkv: tensor<512x96xbf16>)
    -> (tensor<32x512xbf16>, tensor<224x512xf32>, tensor<512x448xf32>, tensor<64x512xf32>, tensor<512x96xf32>, tensor<512xf32>, tensor<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %hidden = arith.constant 512.0 : f32
  // B1: the gather that feeds both GEMMs of fc2.
  %dy2.full = ncclx.all_gather %dy2 dim 0 over @g["tp"] : tensor<32x512xbf16> -> tensor<256x512xbf16>
  // B5: the norm's output was saved as a shard; gathered beside fc2 and fc1's dgrad.
  %ag4 = ncclx.start {
    %r = ncclx.all_gather %ln2 dim 0 over @g["tp"] : tensor<32x512xbf16> -> tensor<256x512xbf16>
    ncclx.yield %r : tensor<256x512xbf16>
  } : !ncclx.future<tensor<256x512xbf16>>
  // B2: fc2.dgrad
  %dact.empty = tensor.empty() : tensor<256x224xf32>
  %dact.zero = linalg.fill ins(%zero : f32) outs(%dact.empty : tensor<256x224xf32>) -> tensor<256x224xf32>
  %dact.f32 = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%dy2.full, %w_fc2 : tensor<256x512xbf16>, tensor<224x512xbf16>) outs(%dact.zero : tensor<256x224xf32>) -> tensor<256x224xf32>
  %dact.dest = tensor.empty() : tensor<256x224xbf16>
  %dact = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dact.f32 : tensor<256x224xf32>) outs(%dact.dest : tensor<256x224xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  } -> tensor<256x224xbf16>
  // B3: fc2.wgrad
  %dw_fc2.empty = tensor.empty() : tensor<224x512xf32>
  %dw_fc2.zero = linalg.fill ins(%zero : f32) outs(%dw_fc2.empty : tensor<224x512xf32>) -> tensor<224x512xf32>
  %dw_fc2.f32 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%act, %dy2.full : tensor<256x224xbf16>, tensor<256x512xbf16>) outs(%dw_fc2.zero : tensor<224x512xf32>) -> tensor<224x512xf32>
  // B4: SwiGLU's backward: out = silu(gate) * up.
  %dgu.empty = tensor.empty() : tensor<256x448xbf16>
  %dgate.dest = tensor.empty() : tensor<256x224xbf16>
  %dgate = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dact, %gate, %up : tensor<256x224xbf16>, tensor<256x224xbf16>, tensor<256x224xbf16>) outs(%dgate.dest : tensor<256x224xbf16>) {
    ^bb0(%d: bf16, %g: bf16, %u: bf16, %y: bf16):
      %d32 = arith.extf %d : bf16 to f32
      %g32 = arith.extf %g : bf16 to f32
      %u32 = arith.extf %u : bf16 to f32
      %neg = arith.negf %g32 : f32
      %ex = math.exp %neg : f32
      %den = arith.addf %one, %ex : f32
      %sig = arith.divf %one, %den : f32
      %rest = arith.subf %one, %sig : f32
      %gr = arith.mulf %g32, %rest : f32
      %in = arith.addf %one, %gr : f32
      %slope = arith.mulf %sig, %in : f32
      %du = arith.mulf %d32, %u32 : f32
      %r = arith.mulf %du, %slope : f32
      %b = arith.truncf %r : f32 to bf16
      linalg.yield %b : bf16
  } -> tensor<256x224xbf16>
  %dup.dest = tensor.empty() : tensor<256x224xbf16>
  %dup = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dact, %gate : tensor<256x224xbf16>, tensor<256x224xbf16>) outs(%dup.dest : tensor<256x224xbf16>) {
    ^bb0(%d: bf16, %g: bf16, %y: bf16):
      %d32 = arith.extf %d : bf16 to f32
      %g32 = arith.extf %g : bf16 to f32
      %neg = arith.negf %g32 : f32
      %ex = math.exp %neg : f32
      %den = arith.addf %one, %ex : f32
      %sig = arith.divf %one, %den : f32
      %silu = arith.mulf %g32, %sig : f32
      %r = arith.mulf %d32, %silu : f32
      %b = arith.truncf %r : f32 to bf16
      linalg.yield %b : bf16
  } -> tensor<256x224xbf16>
  %dgu.g = tensor.insert_slice %dgate into %dgu.empty[0, 0] [256, 224] [1, 1] : tensor<256x224xbf16> into tensor<256x448xbf16>
  %dgu = tensor.insert_slice %dup into %dgu.g[0, 224] [256, 224] [1, 1] : tensor<256x224xbf16> into tensor<256x448xbf16>
  // B6: fc1.dgrad
  %dln2p.empty = tensor.empty() : tensor<256x512xf32>
  %dln2p.zero = linalg.fill ins(%zero : f32) outs(%dln2p.empty : tensor<256x512xf32>) -> tensor<256x512xf32>
  %dln2p.f32 = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%dgu, %w_fc1 : tensor<256x448xbf16>, tensor<512x448xbf16>) outs(%dln2p.zero : tensor<256x512xf32>) -> tensor<256x512xf32>
  %dln2p.dest = tensor.empty() : tensor<256x512xbf16>
  %dln2p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dln2p.f32 : tensor<256x512xf32>) outs(%dln2p.dest : tensor<256x512xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  } -> tensor<256x512xbf16>
  %ln2.full = ncclx.await %ag4 : !ncclx.future<tensor<256x512xbf16>> -> tensor<256x512xbf16>
  // B7: the sum over ranks, beside fc1's wgrad.
  %rs3 = ncclx.start {
    %r = ncclx.reduce_scatter %dln2p dim 0 sum accumulate f32 order any over @g["tp"] : tensor<256x512xbf16> -> tensor<32x512xbf16>
    ncclx.yield %r : tensor<32x512xbf16>
  } : !ncclx.future<tensor<32x512xbf16>>
  // B8: fc1.wgrad
  %dw_fc1.empty = tensor.empty() : tensor<512x448xf32>
  %dw_fc1.zero = linalg.fill ins(%zero : f32) outs(%dw_fc1.empty : tensor<512x448xf32>) -> tensor<512x448xf32>
  %dw_fc1.f32 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%ln2.full, %dgu : tensor<256x512xbf16>, tensor<256x448xbf16>) outs(%dw_fc1.zero : tensor<512x448xf32>) -> tensor<512x448xf32>
  %dln2 = ncclx.await %rs3 : !ncclx.future<tensor<32x512xbf16>> -> tensor<32x512xbf16>
  // B9: second norm's backward, and the residual; its weight's gradient is summed over the ranks' tokens.
  %dy1.e = tensor.empty() : tensor<32xf32>
  %dy1.z = linalg.fill ins(%zero : f32) outs(%dy1.e : tensor<32xf32>) -> tensor<32xf32>
  %dy1.dot = linalg.generic {indexing_maps = [#id, #id, #col, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dln2, %x2, %gamma2 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<512xbf16>) outs(%dy1.z : tensor<32xf32>) {
    ^bb0(%d: bf16, %in: bf16, %w: bf16, %acc: f32):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %w32 = arith.extf %w : bf16 to f32
      %dw = arith.mulf %d32, %w32 : f32
      %dwx = arith.mulf %dw, %in32 : f32
      %s = arith.addf %acc, %dwx : f32
      linalg.yield %s : f32
  } -> tensor<32xf32>
  %dy1.dest = tensor.empty() : tensor<32x512xbf16>
  %dy1 = linalg.generic {indexing_maps = [#id, #id, #col, #row, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dln2, %x2, %gamma2, %rinv2, %dy1.dot, %dy2 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<512xbf16>, tensor<32xf32>, tensor<32xf32>, tensor<32x512xbf16>) outs(%dy1.dest : tensor<32x512xbf16>) {
    ^bb0(%d: bf16, %in: bf16, %w: bf16, %r: f32, %dot: f32, %skip: bf16, %y: bf16):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %w32 = arith.extf %w : bf16 to f32
      %s32 = arith.extf %skip : bf16 to f32
      %dw = arith.mulf %d32, %w32 : f32
      %direct = arith.mulf %dw, %r : f32
      %r2 = arith.mulf %r, %r : f32
      %r3 = arith.mulf %r2, %r : f32
      %mean = arith.divf %dot, %hidden : f32
      %pull = arith.mulf %mean, %r3 : f32
      %through = arith.mulf %in32, %pull : f32
      %g = arith.subf %direct, %through : f32
      %sum = arith.addf %g, %s32 : f32
      %b = arith.truncf %sum : f32 to bf16
      linalg.yield %b : bf16
  } -> tensor<32x512xbf16>
  %dgamma2.e = tensor.empty() : tensor<512xf32>
  %dgamma2.z = linalg.fill ins(%zero : f32) outs(%dgamma2.e : tensor<512xf32>) -> tensor<512xf32>
  %dgamma2.part = linalg.generic {indexing_maps = [#id, #id, #row, #col], iterator_types = ["reduction", "parallel"]}
      ins(%dln2, %x2, %rinv2 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<32xf32>) outs(%dgamma2.z : tensor<512xf32>) {
    ^bb0(%d: bf16, %in: bf16, %r: f32, %acc: f32):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %inr = arith.mulf %in32, %r : f32
      %p = arith.mulf %d32, %inr : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<512xf32>
  %dgamma2 = ncclx.all_reduce %dgamma2.part sum accumulate f32 order any over @g["tp"] : tensor<512xf32> -> tensor<512xf32>
  // B10: the gather that feeds both GEMMs of the output projection.
  %dy1.full = ncclx.all_gather %dy1 dim 0 over @g["tp"] : tensor<32x512xbf16> -> tensor<256x512xbf16>
  // B15: the first norm's output, beside attention and qkv's dgrad.
  %ag6 = ncclx.start {
    %r = ncclx.all_gather %ln1 dim 0 over @g["tp"] : tensor<32x512xbf16> -> tensor<256x512xbf16>
    ncclx.yield %r : tensor<256x512xbf16>
  } : !ncclx.future<tensor<256x512xbf16>>
  // B11: o.dgrad
  %dctx.empty = tensor.empty() : tensor<256x64xf32>
  %dctx.zero = linalg.fill ins(%zero : f32) outs(%dctx.empty : tensor<256x64xf32>) -> tensor<256x64xf32>
  %dctx.f32 = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%dy1.full, %w_o : tensor<256x512xbf16>, tensor<64x512xbf16>) outs(%dctx.zero : tensor<256x64xf32>) -> tensor<256x64xf32>
  %dctx.dest = tensor.empty() : tensor<256x64xbf16>
  %dctx = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dctx.f32 : tensor<256x64xf32>) outs(%dctx.dest : tensor<256x64xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  } -> tensor<256x64xbf16>
  // B12: o.wgrad
  %dw_o.empty = tensor.empty() : tensor<64x512xf32>
  %dw_o.zero = linalg.fill ins(%zero : f32) outs(%dw_o.empty : tensor<64x512xf32>) -> tensor<64x512xf32>
  %dw_o.f32 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%ctx, %dy1.full : tensor<256x64xbf16>, tensor<256x512xbf16>) outs(%dw_o.zero : tensor<64x512xf32>) -> tensor<64x512xf32>
  // B13: attention's backward, with the cost of a fused kernel: 2.5 times a causal forward.
  %dqkv = ncclx.call @attention_backward(%q, %k, %v, %dctx) {flops = 20971520 : i64, bytes = 163840 : i64, sms = 0 : i64}
      : (tensor<4x256x16xbf16>, tensor<256x16xbf16>, tensor<256x16xbf16>, tensor<256x64xbf16>) -> tensor<256x96xbf16>
  // B14: qkv.dgrad
  %dln1p.empty = tensor.empty() : tensor<256x512xf32>
  %dln1p.zero = linalg.fill ins(%zero : f32) outs(%dln1p.empty : tensor<256x512xf32>) -> tensor<256x512xf32>
  %dln1p.f32 = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%dqkv, %w_qkv : tensor<256x96xbf16>, tensor<512x96xbf16>) outs(%dln1p.zero : tensor<256x512xf32>) -> tensor<256x512xf32>
  %dln1p.dest = tensor.empty() : tensor<256x512xbf16>
  %dln1p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dln1p.f32 : tensor<256x512xf32>) outs(%dln1p.dest : tensor<256x512xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %c = arith.truncf %x : f32 to bf16
      linalg.yield %c : bf16
  } -> tensor<256x512xbf16>
  %ln1.full = ncclx.await %ag6 : !ncclx.future<tensor<256x512xbf16>> -> tensor<256x512xbf16>
  // B16: beside qkv's wgrad.
  %rs4 = ncclx.start {
    %r = ncclx.reduce_scatter %dln1p dim 0 sum accumulate f32 order any over @g["tp"] : tensor<256x512xbf16> -> tensor<32x512xbf16>
    ncclx.yield %r : tensor<32x512xbf16>
  } : !ncclx.future<tensor<32x512xbf16>>
  // B17: qkv.wgrad
  %dw_qkv.empty = tensor.empty() : tensor<512x96xf32>
  %dw_qkv.zero = linalg.fill ins(%zero : f32) outs(%dw_qkv.empty : tensor<512x96xf32>) -> tensor<512x96xf32>
  %dw_qkv.f32 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%ln1.full, %dqkv : tensor<256x512xbf16>, tensor<256x96xbf16>) outs(%dw_qkv.zero : tensor<512x96xf32>) -> tensor<512x96xf32>
  %dln1 = ncclx.await %rs4 : !ncclx.future<tensor<32x512xbf16>> -> tensor<32x512xbf16>
  // B18: first norm's backward, and the residual.
  %dx.e = tensor.empty() : tensor<32xf32>
  %dx.z = linalg.fill ins(%zero : f32) outs(%dx.e : tensor<32xf32>) -> tensor<32xf32>
  %dx.dot = linalg.generic {indexing_maps = [#id, #id, #col, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dln1, %x1, %gamma1 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<512xbf16>) outs(%dx.z : tensor<32xf32>) {
    ^bb0(%d: bf16, %in: bf16, %w: bf16, %acc: f32):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %w32 = arith.extf %w : bf16 to f32
      %dw = arith.mulf %d32, %w32 : f32
      %dwx = arith.mulf %dw, %in32 : f32
      %s = arith.addf %acc, %dwx : f32
      linalg.yield %s : f32
  } -> tensor<32xf32>
  %dx.dest = tensor.empty() : tensor<32x512xbf16>
  %dx = linalg.generic {indexing_maps = [#id, #id, #col, #row, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dln1, %x1, %gamma1, %rinv1, %dx.dot, %dy1 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<512xbf16>, tensor<32xf32>, tensor<32xf32>, tensor<32x512xbf16>) outs(%dx.dest : tensor<32x512xbf16>) {
    ^bb0(%d: bf16, %in: bf16, %w: bf16, %r: f32, %dot: f32, %skip: bf16, %y: bf16):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %w32 = arith.extf %w : bf16 to f32
      %s32 = arith.extf %skip : bf16 to f32
      %dw = arith.mulf %d32, %w32 : f32
      %direct = arith.mulf %dw, %r : f32
      %r2 = arith.mulf %r, %r : f32
      %r3 = arith.mulf %r2, %r : f32
      %mean = arith.divf %dot, %hidden : f32
      %pull = arith.mulf %mean, %r3 : f32
      %through = arith.mulf %in32, %pull : f32
      %g = arith.subf %direct, %through : f32
      %sum = arith.addf %g, %s32 : f32
      %b = arith.truncf %sum : f32 to bf16
      linalg.yield %b : bf16
  } -> tensor<32x512xbf16>
  %dgamma1.e = tensor.empty() : tensor<512xf32>
  %dgamma1.z = linalg.fill ins(%zero : f32) outs(%dgamma1.e : tensor<512xf32>) -> tensor<512xf32>
  %dgamma1.part = linalg.generic {indexing_maps = [#id, #id, #row, #col], iterator_types = ["reduction", "parallel"]}
      ins(%dln1, %x1, %rinv1 : tensor<32x512xbf16>, tensor<32x512xbf16>, tensor<32xf32>) outs(%dgamma1.z : tensor<512xf32>) {
    ^bb0(%d: bf16, %in: bf16, %r: f32, %acc: f32):
      %d32 = arith.extf %d : bf16 to f32
      %in32 = arith.extf %in : bf16 to f32
      %inr = arith.mulf %in32, %r : f32
      %p = arith.mulf %d32, %inr : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  } -> tensor<512xf32>
  %dgamma1 = ncclx.all_reduce %dgamma1.part sum accumulate f32 order any over @g["tp"] : tensor<512xf32> -> tensor<512xf32>
  return %dx, %dw_fc2.f32, %dw_fc1.f32, %dw_o.f32, %dw_qkv.f32, %dgamma1, %dgamma2
      : tensor<32x512xbf16>, tensor<224x512xf32>, tensor<512x448xf32>, tensor<64x512xf32>, tensor<512x96xf32>, tensor<512xf32>, tensor<512xf32>
}
