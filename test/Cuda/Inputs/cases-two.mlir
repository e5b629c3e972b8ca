// Two ranks: nothing, one element, odd counts, bytes of 128k + {1, 2, 4, 8}.
ncclx.grid @g ["r" = 2]
func.func @f(%a0: tensor<0xf32>, %a1: tensor<0xf32>, %a2: tensor<0xf32>, %a3: tensor<0xf32>, %a4: tensor<0xf32>, %a5: tensor<0xf32>, %a6: tensor<1xf32>, %a7: tensor<1xf32>, %a8: tensor<1xf32>, %a9: tensor<2xf32>, %a10: tensor<1xf32>, %a11: tensor<1xf32>, %a12: tensor<255xf32>, %a13: tensor<509xf32>, %a14: tensor<509xf32>, %a15: tensor<1018xf32>, %a16: tensor<509xf32>, %a17: tensor<509xf32>, %a18: tensor<65537xi8>, %a19: tensor<131073xi8>, %a20: tensor<65537xi8>, %a21: tensor<131074xi8>, %a22: tensor<65538xi8>, %a23: tensor<131076xi8>, %a24: tensor<65540xi8>, %a25: tensor<131080xi8>, %a26: tensor<32768xi16>, %a27: tensor<65536xi16>, %a28: tensor<32769xi16>, %a29: tensor<65537xi16>, %a30: tensor<32769xi16>, %a31: tensor<65538xi16>, %a32: tensor<32770xi16>, %a33: tensor<65540xi16>)
    -> (tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<509xf32>, tensor<255xf32>, tensor<509xf32>, tensor<1018xf32>, tensor<509xf32>, tensor<509xf32>, tensor<131073xi8>, tensor<131073xi8>, tensor<131074xi8>, tensor<131074xi8>, tensor<131076xi8>, tensor<131076xi8>, tensor<131080xi8>, tensor<131080xi8>, tensor<65536xi16>, tensor<65536xi16>, tensor<65537xi16>, tensor<65537xi16>, tensor<65538xi16>, tensor<65538xi16>, tensor<65540xi16>, tensor<65540xi16>) {
  %r0 = ncclx.all_gather %a0 dim 0 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r1 = ncclx.reduce_scatter %a1 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r2 = ncclx.all_reduce %a2 avg accumulate f32 order rank over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r3 = ncclx.all_to_all %a3 split 0 concat 0 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r4 = ncclx.broadcast %a4 root [1] over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r5 = ncclx.permute %a5 shift 1 over @g["r"] : tensor<0xf32> -> tensor<0xf32>
  %r6 = ncclx.all_gather %a6 dim 0 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r7 = ncclx.reduce_scatter %a7 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r8 = ncclx.all_reduce %a8 avg accumulate f32 order rank over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r9 = ncclx.all_to_all %a9 split 0 concat 0 over @g["r"] : tensor<2xf32> -> tensor<2xf32>
  %r10 = ncclx.broadcast %a10 root [1] over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r11 = ncclx.permute %a11 shift 1 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r12 = ncclx.all_gather %a12 dim 0 over @g["r"] : tensor<255xf32> -> tensor<509xf32>
  %r13 = ncclx.reduce_scatter %a13 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<509xf32> -> tensor<255xf32>
  %r14 = ncclx.all_reduce %a14 avg accumulate f32 order rank over @g["r"] : tensor<509xf32> -> tensor<509xf32>
  %r15 = ncclx.all_to_all %a15 split 0 concat 0 over @g["r"] : tensor<1018xf32> -> tensor<1018xf32>
  %r16 = ncclx.broadcast %a16 root [1] over @g["r"] : tensor<509xf32> -> tensor<509xf32>
  %r17 = ncclx.permute %a17 shift 1 over @g["r"] : tensor<509xf32> -> tensor<509xf32>
  %r18 = ncclx.all_gather %a18 dim 0 over @g["r"] : tensor<65537xi8> -> tensor<131073xi8>
  %r19 = ncclx.all_reduce %a19 avg accumulate i8 order rank over @g["r"] : tensor<131073xi8> -> tensor<131073xi8>
  %r20 = ncclx.all_gather %a20 dim 0 over @g["r"] : tensor<65537xi8> -> tensor<131074xi8>
  %r21 = ncclx.all_reduce %a21 avg accumulate i8 order rank over @g["r"] : tensor<131074xi8> -> tensor<131074xi8>
  %r22 = ncclx.all_gather %a22 dim 0 over @g["r"] : tensor<65538xi8> -> tensor<131076xi8>
  %r23 = ncclx.all_reduce %a23 avg accumulate i8 order rank over @g["r"] : tensor<131076xi8> -> tensor<131076xi8>
  %r24 = ncclx.all_gather %a24 dim 0 over @g["r"] : tensor<65540xi8> -> tensor<131080xi8>
  %r25 = ncclx.all_reduce %a25 avg accumulate i8 order rank over @g["r"] : tensor<131080xi8> -> tensor<131080xi8>
  %r26 = ncclx.all_gather %a26 dim 0 over @g["r"] : tensor<32768xi16> -> tensor<65536xi16>
  %r27 = ncclx.all_reduce %a27 avg accumulate i16 order rank over @g["r"] : tensor<65536xi16> -> tensor<65536xi16>
  %r28 = ncclx.all_gather %a28 dim 0 over @g["r"] : tensor<32769xi16> -> tensor<65537xi16>
  %r29 = ncclx.all_reduce %a29 avg accumulate i16 order rank over @g["r"] : tensor<65537xi16> -> tensor<65537xi16>
  %r30 = ncclx.all_gather %a30 dim 0 over @g["r"] : tensor<32769xi16> -> tensor<65538xi16>
  %r31 = ncclx.all_reduce %a31 avg accumulate i16 order rank over @g["r"] : tensor<65538xi16> -> tensor<65538xi16>
  %r32 = ncclx.all_gather %a32 dim 0 over @g["r"] : tensor<32770xi16> -> tensor<65540xi16>
  %r33 = ncclx.all_reduce %a33 avg accumulate i16 order rank over @g["r"] : tensor<65540xi16> -> tensor<65540xi16>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28, %r29, %r30, %r31, %r32, %r33 : tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<0xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<509xf32>, tensor<255xf32>, tensor<509xf32>, tensor<1018xf32>, tensor<509xf32>, tensor<509xf32>, tensor<131073xi8>, tensor<131073xi8>, tensor<131074xi8>, tensor<131074xi8>, tensor<131076xi8>, tensor<131076xi8>, tensor<131080xi8>, tensor<131080xi8>, tensor<65536xi16>, tensor<65536xi16>, tensor<65537xi16>, tensor<65537xi16>, tensor<65538xi16>, tensor<65538xi16>, tensor<65540xi16>, tensor<65540xi16>
}
