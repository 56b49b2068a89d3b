// child_waits.h: how the children of a Python program ended, as the program learns it from os.wait().
#pragma once

namespace marey::python {

/// From now on, os.wait(), os.waitpid() and the like report which child ended, and how
/// (record/process_report.h). They behave as before, and show the same name, module and documentation. The
/// caller holds the GIL; on failure, nothing changes.
void report_child_waits() noexcept;

}  // namespace marey::python
