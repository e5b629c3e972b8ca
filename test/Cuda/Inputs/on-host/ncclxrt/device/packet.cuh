//===- packet.cuh - Of a kernel that sends none --------------------*- C++ -*-===//
#include "ncclxrt/device/signal.cuh"
