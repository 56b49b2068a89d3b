// marey.h: the header for instrumented files: ranges, operations, instants, counters, allocations. It needs
// C++17 and little compile time. Sessions and traces are in marey/session.h, all other headers in marey/all.h
// (C++20).
#pragma once

#include <marey/memory.h>
#include <marey/operation.h>
#include <marey/range.h>
#include <marey/scope.h>
#include <marey/value.h>
