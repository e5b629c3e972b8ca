//===- Machine.h - The abstract machine: prove, run, time ----------*- C++ -*-===//
//
//   ProofResult proof = prove(schedule);            // right in every order, or a witness
//   TimeResult time = simulate(schedule, costModel);
//   writeTrace(os, traceEvents(schedule, time));
//   DataResult data = run(schedule, {.seed = 7});   // one adversarial order
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_MACHINE_MACHINE_H
#define NCCLX_MACHINE_MACHINE_H

#include "ncclx/Machine/Data.h"
#include "ncclx/Machine/Prove.h"
#include "ncclx/Machine/Schedule.h"
#include "ncclx/Machine/Time.h"
#include "ncclx/Machine/Trace.h"

#endif // NCCLX_MACHINE_MACHINE_H
