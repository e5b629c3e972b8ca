module {
  func.func private @gemm(memref<8x8xf32>, memref<8x8xf32>)
  ctran.program @all grid ["x" = 4, "y" = 2] rx_visible collectives [#ctran.collective<"c0", "all_gather", "ring", ["x"], 256>] {
  ^bb0(%arg0: !ctran.token):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %0 = ctran.coord "x"
    %1 = ctran.coord "y"
    %2 = ctran.shift %0 by %c1 : <"x">
    %3 = ctran.coord_value %0 : <"x">
    %4 = ctran.table %0 [1, 2, 3, 0] : <"x">
    %5 = ctran.window "in" input 0 : memref<8x8xf32>
    %6 = ctran.window "out" output 0 peers load_store : memref<8x8xf32>
    %7 = ctran.window "tmp" scratch generations 2 peers put {some.hint} : memref<4x16xf32>
    %8 = ctran.window "cnt" scratch : memref<1xi64>
    %9 = ctran.reindex %6 along 0 ["x" = 4 chunked, 2 granule 2]
    %10 = ctran.reindex %5 along 0 ["x" = 4] resident extent 32
    %11 = ctran.reindex %7 [4]
    %12 = ctran.slots "data" ["x" = 4, 2] per_run 1
    %13 = ctran.slots "more" [] per_run 2 writers 3 generations 2 scope device realisation consume
    %14 = ctran.peer_view %9 at (%2 : "x", %1 : "y") : !ctran.window
    %15 = ctran.peer_view %9 at rank %4 : !ctran.window
    %16 = ctran.peer_view %12 at (%2 : "x", %1 : "y") : !ctran.slots
    %17 = ctran.range %6
    %18 = ctran.range %9[%0 : "x", %c1]
    %19 = ctran.range %9[%0 : "x"]
    %20 = ctran.range %10[%0 : "x"]
    %21 = ctran.range %14[%0 : "x", %c1]
    %22 = ctran.range %15[%3, %c1]
    %23 = ctran.range %11 from %c0 size %c4
    %24 = ctran.range %11[%c0]
    %25 = ctran.range %9 from %0 : "x" size %c4
    %26 = ctran.slot %16[%0 : "x", %c0]
    %27 = ctran.slot %12 from %c0 size %c4
    %28 = ctran.slot %13
    %29 = ctran.source %20 holds "c0"[%0 : "x"] after %arg0 on host
    %30 = ctran.source %18 holds "c1"[%c0, %0 : "x"] summed ["y"] on host {note = "n"}
    %31 = ctran.source %18 holds "c2" shared ["x"] on host
    %32 = ctran.copy %18 to %21 notify %26 after %29, %30 on sm[%c2] {note = "put", of = "c0"}
    %33 = ctran.copy %18 to %21, %22 on ce
    %34 = ctran.wait %27 >= %c1 after %32, %33 on host
    %35 = ctran.flush after %34 on host
    %36 = ctran.reduce sum accumulate f32 %23, %19 into %24 after %35, %31 on sm
    %37 = ctran.signal %28 after %36 on nic[%c1]
    %38 = ctran.range %8
    %size, %done = ctran.count %38 max 12 after %37 on host
    %39 = ctran.range %11[%c0] sized %size
    %40 = ctran.range %11[%c1] sized %size
    %41 = ctran.copy %39 to %40 after %done on ce
    %42 = ctran.range %5
    %43 = ctran.compute @gemm(%5, %6) reads %42 writes %17 after %41 on compute flops 1.000000e+09 bytes 4.000000e+06 sms 132
    %44 = ctran.sink %18 holds "c3" summed ["x"] by sum scale 5.000000e-01 divide 8 shared ["y"] on host
    %45 = ctran.sink %18 holds "c3" summed ["x", "y"] among [0, 5] by max on host
    %46 = ctran.sink %18 holds "c0" after %43 on host
    ctran.return %46, %44, %45 : !ctran.token, !ctran.token, !ctran.token
  }
  ctran.program @empty grid [] {
  ^bb0(%arg0: !ctran.token):
    ctran.return
  }
  ctran.program @hint grid ["x" = 1] attributes {plan.hash = 7 : i64} {
  ^bb0(%arg0: !ctran.token):
    ctran.return %arg0 : !ctran.token
  }
  ctran.program @allowed grid ["x" = 4, "y" = 2] {
  ^bb0(%arg0: !ctran.token):
    %0 = ctran.coord "x"
    %1 = ctran.coord "y"
    %c0 = arith.constant 0 : index
    %2 = ctran.window "in" input 0 : memref<10xf32>
    %3 = ctran.reindex %2 ["x" = 4]
    %4 = ctran.window "tmp" scratch : memref<20xf32>
    %5 = ctran.reindex %4 [4]
    %6 = ctran.range %3[%0 : "x"]
    %7 = ctran.range %5[%c0]
    %8 = ctran.copy %6 to %7 after %arg0 on ce
    %9 = ctran.window "shard" input 1 : memref<3x2xf32>
    %10 = ctran.reindex %9 along 0 ["x" = 4 chunked granule 3, "y" = 2 chunked] resident extent 17
    %11 = ctran.range %10[%0 : "x", %1 : "y"]
    %12 = ctran.source %11 holds "v"[%0 : "x"] summed ["x"] shared ["y"] after %8 on host
    ctran.return %12 : !ctran.token
  }
}

