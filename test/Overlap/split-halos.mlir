// Stencils whose interior is computed while their halo is exchanged; each rule refuses. The machine is that of a host: memory
// is slow, and what is small takes its time.
// DEFINE: %{machine} = machine=%ncclx_src/examples/stencil-3d/machine.json
// RUN: ncclx-opt %s --ncclx-split-halos=%{machine} --remarks-filter=ncclx-split-halos --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The scheduler hides the exchanges behind the interiors.
// RUN: ncclx-opt %s --ncclx-split-halos=%{machine} --ncclx-overlap=%{machine} --ncclx-verify-legality --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.err | FileCheck %s --check-prefix=PLACED
// RUN: FileCheck %s --check-prefix=BESIDE < %t.err
// A margin that no exchange is worth leaves everything as it is.
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-split-halos="%{machine} margin=100" | diff - %t.plain
// RUN: not ncclx-opt %s --ncclx-split-halos 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: ncclx-split-halos needs machine=FILE

ncclx.grid @g ["y" = 2, "x" = 4]

// Two kernels that read the field and what is above and below it: rows 1 to 254 need no neighbour.
// WHY: HaloSplit{{.*}}Function=rows{{.*}}is cut: 254x512 of 256x512 do without 2 exchanges, 2 slabs wait for them
// CHECK-LABEL: @rows
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<256x512xf32>
// CHECK: ncclx.permute
// CHECK: ncclx.permute
// CHECK-NOT: tensor<258x512xf32>
// CHECK-DAG: %[[ABOVE:.+]] = tensor.extract_slice %[[F]][0, 0] [254, 512]
// CHECK-DAG: %[[BELOW:.+]] = tensor.extract_slice %[[F]][2, 0] [254, 512]
// CHECK: %[[SUM:.+]] = linalg.add ins(%[[ABOVE]], %[[BELOW]] :
// CHECK: linalg.sub ins(%[[SUM]], %{{.+}} : tensor<254x512xf32>
// CHECK: linalg.sub {{.*}} -> tensor<1x512xf32>
// CHECK: linalg.sub {{.*}} -> tensor<1x512xf32>
// BESIDE: Function=rows{{.*}}exposed 104.1 us of 733.2 us before, 0.0
// BESIDE: Function=rows{{.*}}permute of 2048 bytes runs beside linalg.{{add|sub}} -> tensor<254x512xf32> for [[ALL:.*]] us of [[ALL]] us
// BESIDE: Function=rows{{.*}}permute of 2048 bytes runs beside linalg.{{add|sub}} -> tensor<254x512xf32> for [[ALL]] us of [[ALL]] us
// PLACED-LABEL: @rows
// PLACED: ncclx.start
// PLACED: linalg.{{add|sub}} {{.*}} -> tensor<254x512xf32>
// PLACED: ncclx.await
// PLACED: linalg.add {{.*}} -> tensor<1x512xf32>
// PLACED: ncclx.await
// PLACED: linalg.add {{.*}} -> tensor<1x512xf32>
func.func @rows(%f: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %last = tensor.extract_slice %f[255, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %first = tensor.extract_slice %f[0, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %before = ncclx.permute %last shift 1 over @g["x"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %behind = ncclx.permute %first shift -1 over @g["x"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %e = tensor.empty() : tensor<258x512xf32>
  %p0 = tensor.insert_slice %f into %e[1, 0] [256, 512] [1, 1] : tensor<256x512xf32> into tensor<258x512xf32>
  %p1 = tensor.insert_slice %before into %p0[0, 0] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<258x512xf32>
  %p = tensor.insert_slice %behind into %p1[257, 0] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<258x512xf32>
  %above = tensor.extract_slice %p[0, 0] [256, 512] [1, 1] : tensor<258x512xf32> to tensor<256x512xf32>
  %below = tensor.extract_slice %p[2, 0] [256, 512] [1, 1] : tensor<258x512xf32> to tensor<256x512xf32>
  %o = tensor.empty() : tensor<256x512xf32>
  %sum = linalg.add ins(%above, %below : tensor<256x512xf32>, tensor<256x512xf32>) outs(%o : tensor<256x512xf32>) -> tensor<256x512xf32>
  %next = linalg.sub ins(%sum, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%o : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// A window of 3 by 5, and corners from the neighbours' neighbours by way of the rows that have come: 2 columns at either side
// need one exchange, or two.
// WHY: HaloSplit{{.*}}Function=window{{.*}}is cut: 254x508 of 256x512 do without 4 exchanges, 4 slabs wait for them
// CHECK-LABEL: @window
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<256x512xf32>, tensor<3x5xf32>)
func.func @window(%f: tensor<256x512xf32>, %k: tensor<3x5xf32>) -> tensor<256x512xf32> {
  %zero = arith.constant 0.0 : f32
  %last = tensor.extract_slice %f[255, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %first = tensor.extract_slice %f[0, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %before = ncclx.permute %last shift 1 over @g["y"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %behind = ncclx.permute %first shift -1 over @g["y"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %e = tensor.empty() : tensor<258x516xf32>
  %p0 = tensor.insert_slice %f into %e[1, 2] [256, 512] [1, 1] : tensor<256x512xf32> into tensor<258x516xf32>
  %p1 = tensor.insert_slice %before into %p0[0, 2] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<258x516xf32>
  %p2 = tensor.insert_slice %behind into %p1[257, 2] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<258x516xf32>
  %right = tensor.extract_slice %p2[0, 512] [258, 2] [1, 1] : tensor<258x516xf32> to tensor<258x2xf32>
  %left = tensor.extract_slice %p2[0, 2] [258, 2] [1, 1] : tensor<258x516xf32> to tensor<258x2xf32>
  %from.left = ncclx.permute %right shift 1 over @g["x"] : tensor<258x2xf32> -> tensor<258x2xf32>
  %from.right = ncclx.permute %left shift -1 over @g["x"] : tensor<258x2xf32> -> tensor<258x2xf32>
  %p3 = tensor.insert_slice %from.left into %p2[0, 0] [258, 2] [1, 1] : tensor<258x2xf32> into tensor<258x516xf32>
  %p = tensor.insert_slice %from.right into %p3[0, 514] [258, 2] [1, 1] : tensor<258x2xf32> into tensor<258x516xf32>
  %o = tensor.empty() : tensor<256x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<256x512xf32>) -> tensor<256x512xf32>
  %next = linalg.generic {indexing_maps = [affine_map<(i, j, m, n) -> (i + m, j + n)>, affine_map<(i, j, m, n) -> (m, n)>, affine_map<(i, j, m, n) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : tensor<258x516xf32>, tensor<3x5xf32>) outs(%z : tensor<256x512xf32>) {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %xy = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %xy : f32
      linalg.yield %s : f32
  } -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// A boundary that is no neighbour: what came is weighed before it is inserted; sums are upstream's on tensors.
// WHY: HaloSplit{{.*}}Function=weighed{{.*}}is cut: 255x512 of 256x512 do without 1 exchanges, 1 slabs wait for them
// CHECK-LABEL: @weighed
// CHECK: arith.addf {{.*}} : tensor<255x512xf32>
// CHECK: arith.mulf {{.*}} : tensor<1x512xf32>
// CHECK: arith.addf {{.*}} : tensor<1x512xf32>
func.func @weighed(%f: tensor<256x512xf32>, %w: tensor<1x512xf32>) -> tensor<256x512xf32> {
  %last = tensor.extract_slice %f[255, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %before = ncclx.permute %last pairs [0 -> 1, 1 -> 2, 2 -> 3] over @g["x"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %mine = arith.mulf %before, %w : tensor<1x512xf32>
  %e = tensor.empty() : tensor<257x512xf32>
  %p0 = tensor.insert_slice %mine into %e[0, 0] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<257x512xf32>
  %p = tensor.insert_slice %f into %p0[1, 0] [256, 512] [1, 1] : tensor<256x512xf32> into tensor<257x512xf32>
  %above = tensor.extract_slice %p[0, 0] [256, 512] [1, 1] : tensor<257x512xf32> to tensor<256x512xf32>
  %sum = arith.addf %above, %f : tensor<256x512xf32>
  %o = tensor.empty() : tensor<256x512xf32>
  %next = linalg.mul ins(%sum, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%o : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// Two steps on one halo of two rows: of the first one, a row more is made for either part than the second one gives.
// WHY: HaloSplit{{.*}}Function=two_steps{{.*}}is cut: 254x512 of 256x512 do without 1 exchanges, 1 slabs wait for them
// CHECK-LABEL: @two_steps
// CHECK: linalg.sub {{.*}} -> tensor<255x512xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<255x512xf32>, tensor<2xf32>) outs(%{{.+}} : tensor<254x512xf32>)
// CHECK: linalg.sub {{.*}} -> tensor<3x512xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<3x512xf32>, tensor<2xf32>) outs(%{{.+}} : tensor<2x512xf32>)
func.func @two_steps(%f: tensor<256x512xf32>, %k: tensor<2xf32>, %o: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %last = tensor.extract_slice %f[254, 0] [2, 512] [1, 1] : tensor<256x512xf32> to tensor<2x512xf32>
  %before = ncclx.permute %last shift 1 over @g["x"] : tensor<2x512xf32> -> tensor<2x512xf32>
  %e = tensor.empty() : tensor<258x512xf32>
  %p0 = tensor.insert_slice %before into %e[0, 0] [2, 512] [1, 1] : tensor<2x512xf32> into tensor<258x512xf32>
  %p = tensor.insert_slice %f into %p0[2, 0] [256, 512] [1, 1] : tensor<256x512xf32> into tensor<258x512xf32>
  %a = tensor.extract_slice %p[0, 0] [257, 512] [1, 1] : tensor<258x512xf32> to tensor<257x512xf32>
  %b = tensor.extract_slice %p[1, 0] [257, 512] [1, 1] : tensor<258x512xf32> to tensor<257x512xf32>
  %i = tensor.empty() : tensor<257x512xf32>
  %once = linalg.sub ins(%a, %b : tensor<257x512xf32>, tensor<257x512xf32>) outs(%i : tensor<257x512xf32>) -> tensor<257x512xf32>
  %next = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + k, j)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%once, %k : tensor<257x512xf32>, tensor<2xf32>) outs(%o : tensor<256x512xf32>) {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %xy = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %xy : f32
      linalg.yield %s : f32
  } -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// One row on each rank: it needs both neighbours'.
// WHY: HaloWhole{{.*}}Function=thin{{.*}}none of its elements can do without what is communicated
// CHECK-LABEL: @thin
// CHECK: linalg.add {{.*}} -> tensor<1x65536xf32>
func.func @thin(%f: tensor<1x65536xf32>) -> tensor<1x65536xf32> {
  %before = ncclx.permute %f shift 1 over @g["x"] : tensor<1x65536xf32> -> tensor<1x65536xf32>
  %e = tensor.empty() : tensor<2x65536xf32>
  %p0 = tensor.insert_slice %f into %e[1, 0] [1, 65536] [1, 1] : tensor<1x65536xf32> into tensor<2x65536xf32>
  %p = tensor.insert_slice %before into %p0[0, 0] [1, 65536] [1, 1] : tensor<1x65536xf32> into tensor<2x65536xf32>
  %above = tensor.extract_slice %p[0, 0] [1, 65536] [1, 1] : tensor<2x65536xf32> to tensor<1x65536xf32>
  %o = tensor.empty() : tensor<1x65536xf32>
  %next = linalg.add ins(%above, %f : tensor<1x65536xf32>, tensor<1x65536xf32>) outs(%o : tensor<1x65536xf32>) -> tensor<1x65536xf32>
  return %next : tensor<1x65536xf32>
}

// A view of the field with its halo: what goes where is not followed through it.
// WHY: HaloWhole{{.*}}Function=view{{.*}}it needs all of what is communicated, wherever it is computed
// CHECK-LABEL: @view
// CHECK: math.sqrt {{.*}} : tensor<131584xf32>
func.func @view(%f: tensor<256x512xf32>) -> tensor<131584xf32> {
  %last = tensor.extract_slice %f[255, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %before = ncclx.permute %last shift 1 over @g["x"] : tensor<1x512xf32> -> tensor<1x512xf32>
  %e = tensor.empty() : tensor<257x512xf32>
  %p0 = tensor.insert_slice %before into %e[0, 0] [1, 512] [1, 1] : tensor<1x512xf32> into tensor<257x512xf32>
  %p = tensor.insert_slice %f into %p0[1, 0] [256, 512] [1, 1] : tensor<256x512xf32> into tensor<257x512xf32>
  %flat = tensor.collapse_shape %p [[0, 1]] : tensor<257x512xf32> into tensor<131584xf32>
  %next = math.sqrt %flat : tensor<131584xf32>
  return %next : tensor<131584xf32>
}

// Little to do in front of what is exchanged: the model says so.
// WHY: HaloWhole{{.*}}Function=small{{.*}}2x4 of 4x4 do without 2 exchanges, 2 slabs wait for them; {{.*}} us so, {{.*}} us whole
// CHECK-LABEL: @small
// CHECK: linalg.add {{.*}} -> tensor<4x4xf32>
func.func @small(%f: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %last = tensor.extract_slice %f[3, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<1x4xf32>
  %first = tensor.extract_slice %f[0, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<1x4xf32>
  %before = ncclx.permute %last shift 1 over @g["x"] : tensor<1x4xf32> -> tensor<1x4xf32>
  %behind = ncclx.permute %first shift -1 over @g["x"] : tensor<1x4xf32> -> tensor<1x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %p0 = tensor.insert_slice %f into %e[1, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<6x4xf32>
  %p1 = tensor.insert_slice %before into %p0[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<6x4xf32>
  %p = tensor.insert_slice %behind into %p1[5, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<6x4xf32>
  %above = tensor.extract_slice %p[0, 0] [4, 4] [1, 1] : tensor<6x4xf32> to tensor<4x4xf32>
  %below = tensor.extract_slice %p[2, 0] [4, 4] [1, 1] : tensor<6x4xf32> to tensor<4x4xf32>
  %o = tensor.empty() : tensor<4x4xf32>
  %next = linalg.add ins(%above, %below : tensor<4x4xf32>, tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %next : tensor<4x4xf32>
}

// Rows that neighbours put into a window: the interior is made of the field alone, in front of the wait.
// WHY: HaloSplit{{.*}}Function=put_into_window{{.*}}is cut: 254x512 of 256x512 do without 2 exchanges, 2 slabs wait for them; {{.*}} us so, {{.*}} us whole
// CHECK-LABEL: @put_into_window
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<256x512xf32>
// CHECK-COUNT-3: ncclx.put
// CHECK-DAG: %[[ABOVE:.+]] = tensor.extract_slice %[[F]][0, 0] [254, 512]
// CHECK-DAG: %[[BELOW:.+]] = tensor.extract_slice %[[F]][2, 0] [254, 512]
// CHECK: linalg.add ins(%[[ABOVE]], %[[BELOW]] :
// CHECK: linalg.sub {{.*}} -> tensor<254x512xf32>
// CHECK: ncclx.wait
// CHECK: %[[A:.+]] = ncclx.get
// CHECK: tensor.extract_slice %[[A]][0, 0] [1, 512]
// CHECK: linalg.sub {{.*}} -> tensor<1x512xf32>
// CHECK: linalg.sub {{.*}} -> tensor<1x512xf32>
// CHECK: return
// PLACED-LABEL: @put_into_window
// PLACED: linalg.sub {{.*}} -> tensor<254x512xf32>
// PLACED: ncclx.wait
func.func @put_into_window(%f: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<258x512xf32>>
  %last = tensor.extract_slice %f[255, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  %first = tensor.extract_slice %f[0, 0] [1, 512] [1, 1] : tensor<256x512xf32> to tensor<1x512xf32>
  ncclx.put %last into %w[0, 0] shift 1 : tensor<1x512xf32> into !ncclx.window<tensor<258x512xf32>>
  ncclx.put %f into %w[1, 0] : tensor<256x512xf32> into !ncclx.window<tensor<258x512xf32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<258x512xf32>>
  ncclx.put %first into %w[257, 0] shift -1 : tensor<1x512xf32> into !ncclx.window<tensor<258x512xf32>>
  ncclx.signal %w shift -1 : !ncclx.window<tensor<258x512xf32>>
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<258x512xf32>>
  ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<258x512xf32>>
  %above = ncclx.get %w[0, 0] : !ncclx.window<tensor<258x512xf32>> -> tensor<256x512xf32>
  %below = ncclx.get %w[2, 0] : !ncclx.window<tensor<258x512xf32>> -> tensor<256x512xf32>
  %new = tensor.empty() : tensor<256x512xf32>
  %sum = linalg.add ins(%above, %below : tensor<256x512xf32>, tensor<256x512xf32>) outs(%new : tensor<256x512xf32>) -> tensor<256x512xf32>
  %next = linalg.sub ins(%sum, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%new : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// What a neighbour writes over the whole field leaves no interior.
// WHY: HaloWhole{{.*}}Function=overwritten{{.*}}none of its elements can do without what is communicated
func.func @overwritten(%f: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<256x512xf32>>
  ncclx.put %f into %w[0, 0] : tensor<256x512xf32> into !ncclx.window<tensor<256x512xf32>>
  ncclx.signal %w shift -1 : !ncclx.window<tensor<256x512xf32>>
  ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<256x512xf32>>
  ncclx.put %f into %w[0, 0] shift 1 : tensor<256x512xf32> into !ncclx.window<tensor<256x512xf32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<256x512xf32>>
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<256x512xf32>>
  %all = ncclx.get %w[0, 0] : !ncclx.window<tensor<256x512xf32>> -> tensor<256x512xf32>
  %new = tensor.empty() : tensor<256x512xf32>
  %next = linalg.sub ins(%all, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%new : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}

// Where a branch may have put something, nobody knows what the window holds.
// WHY: HaloWhole{{.*}}Function=elsewhere{{.*}}the puts in front of it do not tell what the window holds
func.func @elsewhere(%f: tensor<256x512xf32>, %more: i1 {ncclx.uniform}) -> tensor<256x512xf32> {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<256x512xf32>>
  ncclx.put %f into %w[0, 0] : tensor<256x512xf32> into !ncclx.window<tensor<256x512xf32>>
  scf.if %more {
    %twice = linalg.add ins(%f, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%f : tensor<256x512xf32>) -> tensor<256x512xf32>
    ncclx.put %twice into %w[0, 0] : tensor<256x512xf32> into !ncclx.window<tensor<256x512xf32>>
  }
  %all = ncclx.get %w[0, 0] : !ncclx.window<tensor<256x512xf32>> -> tensor<256x512xf32>
  %new = tensor.empty() : tensor<256x512xf32>
  %next = linalg.sub ins(%all, %f : tensor<256x512xf32>, tensor<256x512xf32>) outs(%new : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %next : tensor<256x512xf32>
}
