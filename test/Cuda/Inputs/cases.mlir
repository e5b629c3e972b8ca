// Known cases, by their numbers (test/CASES.md); 5 ranks, so that little divides.
ncclx.grid @g ["r" = 5]
func.func @f(%a0: tensor<1xf32>, %a1: tensor<1639xf32>, %a2: tensor<1xf32>, %a3: tensor<2xui64>, %a4: tensor<3xf32>, %a5: tensor<8xui64>, %a6: tensor<9xf32>, %a7: tensor<16xui64>, %a8: tensor<17xf32>, %a9: tensor<32xui64>, %a10: tensor<1024xf32>, %a11: tensor<8195xui64>, %a12: tensor<1027xf32>, %a13: tensor<1027xf32>, %a14: tensor<1027xf32>, %a15: tensor<1027xf32>, %a16: tensor<8192xbf16>, %a17: tensor<67xbf16>, %a18: tensor<66xbf16>, %a19: tensor<65xbf16>, %a20: tensor<64xbf16>, %a21: tensor<205xi8>, %a22: tensor<515xf16>, %a23: tensor<300xi32>, %a24: tensor<960xf64>, %a25: tensor<20xi16>, %a26: tensor<1xi8>, %a27: tensor<64xi8>, %a28: tensor<1024xi8>, %a29: tensor<4096xi8>, %a30: tensor<2097xi8>, %a31: tensor<1027xf32>, %a32: tensor<1027xf32>, %a33: tensor<1027xf32>, %a34: tensor<1027xf32>, %a35: tensor<0xf32>, %a36: tensor<0xf32>, %a37: tensor<0xf32>, %a38: tensor<0xf32>, %a39: tensor<0xf32>, %a40: tensor<0xf32>)
    -> (tensor<1xf32>, tensor<8195xf32>, tensor<1xf32>, tensor<2xui64>, tensor<3xf32>, tensor<8xui64>, tensor<9xf32>, tensor<16xui64>, tensor<17xf32>, tensor<32xui64>, tensor<1024xf32>, tensor<8195xui64>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1639xbf16>, tensor<14xbf16>, tensor<14xbf16>, tensor<13xbf16>, tensor<13xbf16>, tensor<205xi8>, tensor<515xf16>, tensor<300xi32>, tensor<960xf64>, tensor<20xi16>, tensor<1xi8>, tensor<64xi8>, tensor<1024xi8>, tensor<4096xi8>, tensor<2097xi8>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>) {
  // case 13
  %r0 = ncclx.all_gather %a0 dim 0 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r1 = ncclx.all_gather %a1 dim 0 over @g["r"] : tensor<1639xf32> -> tensor<8195xf32>
  // case 14
  %r2 = ncclx.all_reduce %a2 sum accumulate f32 order rank over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r3 = ncclx.all_reduce %a3 sum accumulate ui64 order rank over @g["r"] : tensor<2xui64> -> tensor<2xui64>
  %r4 = ncclx.all_reduce %a4 sum accumulate f32 order rank over @g["r"] : tensor<3xf32> -> tensor<3xf32>
  %r5 = ncclx.all_reduce %a5 sum accumulate ui64 order rank over @g["r"] : tensor<8xui64> -> tensor<8xui64>
  %r6 = ncclx.all_reduce %a6 sum accumulate f32 order rank over @g["r"] : tensor<9xf32> -> tensor<9xf32>
  %r7 = ncclx.all_reduce %a7 sum accumulate ui64 order rank over @g["r"] : tensor<16xui64> -> tensor<16xui64>
  %r8 = ncclx.all_reduce %a8 sum accumulate f32 order rank over @g["r"] : tensor<17xf32> -> tensor<17xf32>
  %r9 = ncclx.all_reduce %a9 sum accumulate ui64 order rank over @g["r"] : tensor<32xui64> -> tensor<32xui64>
  %r10 = ncclx.all_reduce %a10 sum accumulate f32 order rank over @g["r"] : tensor<1024xf32> -> tensor<1024xf32>
  %r11 = ncclx.all_reduce %a11 sum accumulate ui64 order rank over @g["r"] : tensor<8195xui64> -> tensor<8195xui64>
  %r12 = ncclx.all_reduce %a12 prod accumulate f32 order rank over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r13 = ncclx.all_reduce %a13 max accumulate f32 order rank over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r14 = ncclx.all_reduce %a14 min accumulate f32 order rank over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r15 = ncclx.all_reduce %a15 avg accumulate f32 order rank over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  // case 15
  %r16 = ncclx.reduce_scatter %a16 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<8192xbf16> -> tensor<1639xbf16>
  %r17 = ncclx.reduce_scatter %a17 dim 0 prod accumulate f32 order rank over @g["r"] : tensor<67xbf16> -> tensor<14xbf16>
  %r18 = ncclx.reduce_scatter %a18 dim 0 max accumulate f32 order rank over @g["r"] : tensor<66xbf16> -> tensor<14xbf16>
  %r19 = ncclx.reduce_scatter %a19 dim 0 min accumulate f32 order rank over @g["r"] : tensor<65xbf16> -> tensor<13xbf16>
  %r20 = ncclx.reduce_scatter %a20 dim 0 avg accumulate f32 order rank over @g["r"] : tensor<64xbf16> -> tensor<13xbf16>
  // case 16
  %r21 = ncclx.all_to_all %a21 split 0 concat 0 over @g["r"] : tensor<205xi8> -> tensor<205xi8>
  %r22 = ncclx.all_to_all %a22 split 0 concat 0 over @g["r"] : tensor<515xf16> -> tensor<515xf16>
  %r23 = ncclx.all_to_all %a23 split 0 concat 0 over @g["r"] : tensor<300xi32> -> tensor<300xi32>
  %r24 = ncclx.all_to_all %a24 split 0 concat 0 over @g["r"] : tensor<960xf64> -> tensor<960xf64>
  %r25 = ncclx.all_to_all %a25 split 0 concat 0 over @g["r"] : tensor<20xi16> -> tensor<20xi16>
  // case 17
  %r26 = ncclx.broadcast %a26 root [0] over @g["r"] : tensor<1xi8> -> tensor<1xi8>
  %r27 = ncclx.broadcast %a27 root [1] over @g["r"] : tensor<64xi8> -> tensor<64xi8>
  %r28 = ncclx.broadcast %a28 root [2] over @g["r"] : tensor<1024xi8> -> tensor<1024xi8>
  %r29 = ncclx.broadcast %a29 root [3] over @g["r"] : tensor<4096xi8> -> tensor<4096xi8>
  %r30 = ncclx.broadcast %a30 root [4] over @g["r"] : tensor<2097xi8> -> tensor<2097xi8>
  // case 18
  %r31 = ncclx.permute %a31 shift 1 over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r32 = ncclx.permute %a32 shift 0 over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r33 = ncclx.permute %a33 pairs [0 -> 1, 1 -> 2, 2 -> 0, 3 -> 4, 4 -> 3] over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  %r34 = ncclx.permute %a34 pairs [0 -> 0, 1 -> 1, 2 -> 4, 3 -> 3, 4 -> 2] over @g["r"] : tensor<1027xf32> -> tensor<1027xf32>
  // case 19
  %r35 = ncclx.all_gather %a35 dim 0 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r36 = ncclx.all_reduce %a36 sum accumulate f32 order rank over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r37 = ncclx.reduce_scatter %a37 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r38 = ncclx.all_to_all %a38 split 0 concat 0 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r39 = ncclx.broadcast %a39 root [2] over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r40 = ncclx.permute %a40 shift 1 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28, %r29, %r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37, %r38, %r39, %r40 : tensor<1xf32>, tensor<8195xf32>, tensor<1xf32>, tensor<2xui64>, tensor<3xf32>, tensor<8xui64>, tensor<9xf32>, tensor<16xui64>, tensor<17xf32>, tensor<32xui64>, tensor<1024xf32>, tensor<8195xui64>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1639xbf16>, tensor<14xbf16>, tensor<14xbf16>, tensor<13xbf16>, tensor<13xbf16>, tensor<205xi8>, tensor<515xf16>, tensor<300xi32>, tensor<960xf64>, tensor<20xi16>, tensor<1xi8>, tensor<64xi8>, tensor<1024xi8>, tensor<4096xi8>, tensor<2097xi8>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<1027xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>
}
