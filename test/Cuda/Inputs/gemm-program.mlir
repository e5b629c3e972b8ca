// A written program that multiplies on the side: sums of nothing, parts of windows, a window that rotates, its own number of
// multiprocessors.
func.func @nothing(%in: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.subview %in[0, 0] [4, 0] [1, 1] : memref<4x6xf32> to memref<4x0xf32, strided<[6, 1]>>
  %b = memref.subview %in[0, 0] [0, 6] [1, 1] : memref<4x6xf32> to memref<0x6xf32, strided<[6, 1]>>
  linalg.fill ins(%zero : f32) outs(%out : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x0xf32, strided<[6, 1]>>, memref<0x6xf32, strided<[6, 1]>>) outs(%out : memref<4x6xf32>)
  return
}
func.func @part(%in: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.subview %in[0, 0] [2, 0] [1, 1] : memref<4x6xf32> to memref<2x0xf32, strided<[6, 1]>>
  %b = memref.subview %in[0, 0] [0, 3] [1, 1] : memref<4x6xf32> to memref<0x3xf32, strided<[6, 1]>>
  %c = memref.subview %out[1, 1] [2, 3] [1, 1] : memref<4x6xf32> to memref<2x3xf32, strided<[6, 1], offset: 7>>
  linalg.fill ins(%zero : f32) outs(%c : memref<2x3xf32, strided<[6, 1], offset: 7>>)
  linalg.matmul ins(%a, %b : memref<2x0xf32, strided<[6, 1]>>, memref<0x3xf32, strided<[6, 1]>>) outs(%c : memref<2x3xf32, strided<[6, 1], offset: 7>>)
  return
}
func.func @none(%in: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %a = memref.subview %in[0, 0] [0, 4] [1, 1] : memref<4x6xf32> to memref<0x4xf32, strided<[6, 1]>>
  %b = memref.subview %in[0, 0] [4, 3] [1, 1] : memref<4x6xf32> to memref<4x3xf32, strided<[6, 1]>>
  %c = memref.subview %out[0, 0] [0, 3] [1, 1] : memref<4x6xf32> to memref<0x3xf32, strided<[6, 1]>>
  linalg.matmul ins(%a, %b : memref<0x4xf32, strided<[6, 1]>>, memref<4x3xf32, strided<[6, 1]>>) outs(%c : memref<0x3xf32, strided<[6, 1]>>)
  return
}
func.func @kept(%in: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %a = memref.subview %in[0, 0] [4, 0] [1, 1] : memref<4x6xf32> to memref<4x0xf32, strided<[6, 1]>>
  %b = memref.subview %in[0, 0] [0, 6] [1, 1] : memref<4x6xf32> to memref<0x6xf32, strided<[6, 1]>>
  memref.copy %in, %out : memref<4x6xf32> to memref<4x6xf32>
  linalg.matmul ins(%a, %b : memref<4x0xf32, strided<[6, 1]>>, memref<0x6xf32, strided<[6, 1]>>) outs(%out : memref<4x6xf32>)
  return
}
func.func @corner(%in: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %a = memref.subview %in[0, 1] [2, 4] [1, 1] : memref<4x6xf32> to memref<2x4xf32, strided<[6, 1], offset: 1>>
  %b = memref.subview %in[0, 0] [4, 3] [1, 1] : memref<4x6xf32> to memref<4x3xf32, strided<[6, 1]>>
  %c = memref.subview %out[2, 2] [2, 3] [1, 1] : memref<4x6xf32> to memref<2x3xf32, strided<[6, 1], offset: 14>>
  linalg.matmul ins(%a, %b : memref<2x4xf32, strided<[6, 1], offset: 1>>, memref<4x3xf32, strided<[6, 1]>>) outs(%c : memref<2x3xf32, strided<[6, 1], offset: 14>>)
  return
}
ctran.program @p grid ["x" = 2] collectives [#ctran.collective<"g", "all_gather", "put", ["x"], 192>] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %x = ctran.coord "x"
  %peer = ctran.shift %x by %c1 : !ctran.coord<"x">
  %in = ctran.window "in" input 0 : memref<4x6xf32>
  %outw = ctran.window "out" output 0 peers load_store : memref<8x6xf32>
  %side = ctran.window "side" scratch generations 3 : memref<4x6xf32>
  %out = ctran.reindex %outw along 0 ["x" = 2]
  %ready = ctran.slots "ready" [] per_run 1
  %came = ctran.slots "came" [] per_run 1
  %mine = ctran.range %in
  %box = ctran.range %side
  %n = ctran.compute @nothing(%in, %side) reads %mine writes %box after %entry on compute flops 0.0 bytes 0.0 sms 0
  %q = ctran.compute @part(%in, %side) reads %mine writes %box after %n on compute flops 0.0 bytes 0.0 sms 0
  %z = ctran.compute @none(%in, %side) reads %mine writes %box after %q on compute flops 0.0 bytes 0.0 sms 0
  %k = ctran.compute @kept(%in, %side) reads %mine writes %box after %z on compute flops 0.0 bytes 0.0 sms 0
  %m = ctran.compute @corner(%in, %side) reads %mine, %box writes %box after %k on compute flops 48.0 bytes 0.0 sms 96
  %have = ctran.source %mine holds "g"[%x : "x"] after %entry on host
  %there = ctran.peer_view %ready at (%peer : "x") : !ctran.slots
  %may = ctran.slot %there
  %told = ctran.signal %may after %entry on ce {of = "g", note = "you may write"}
  %mayI = ctran.slot %ready
  %w = ctran.wait %mayI >= %c1 after %told on ce {of = "g", note = "may I write"}
  %view = ctran.peer_view %out at (%peer : "x") : !ctran.window
  %place = ctran.range %view[%x : "x"]
  %arrived = ctran.peer_view %came at (%peer : "x") : !ctran.slots
  %flag = ctran.slot %arrived
  %put = ctran.copy %mine to %place notify %flag after %have, %w on ce {of = "g", note = "put"}
  %own = ctran.range %out[%x : "x"]
  %kept = ctran.copy %mine to %own after %have on ce {of = "g", note = "keep own"}
  %all = ctran.slot %came
  %got = ctran.wait %all >= %c1 on ce {of = "g", note = "await"}
  %whole = ctran.range %out
  %end = ctran.sink %whole holds "g" after %got, %kept on host
  ctran.return %end, %put, %kept, %m : !ctran.token, !ctran.token, !ctran.token, !ctran.token
}
