// module_values.h: reads the class, parameters, gradients, state and children of modules and optimizers.
#pragma once

#include <memory>
#include <vector>

#include <marey/value.h>

#include "sources/python/module_calls.h"

namespace marey::bindings {

/// Implements python::DescribeModule.
void describe_module(const python::ModuleInstance& instance, std::vector<KeyedValue>& values,
                     std::shared_ptr<void>& held);

}  // namespace marey::bindings
