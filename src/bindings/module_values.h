// module_values.h: what modules and optimizers say of themselves: class, parameters, gradients, state, parts.
#pragma once

#include <memory>
#include <vector>

#include <marey/value.h>

#include "sources/python/module_calls.h"

namespace marey::bindings {

/// A python::DescribeModule.
void describe_module(const python::ModuleInstance& instance, std::vector<KeyedValue>& values,
                     std::shared_ptr<void>& held);

}  // namespace marey::bindings
