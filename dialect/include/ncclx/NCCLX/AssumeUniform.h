//===- AssumeUniform.h - The op that all ranks agree by ------------*- C++ -*-===//
#ifndef NCCLX_NCCLX_ASSUMEUNIFORM_H
#define NCCLX_NCCLX_ASSUMEUNIFORM_H

#include "ncclx/NCCLX/NCCLX.h"

#define GET_OP_CLASSES
#include "ncclx/NCCLX/NCCLXAssumeUniform.h.inc"

#endif // NCCLX_NCCLX_ASSUMEUNIFORM_H
