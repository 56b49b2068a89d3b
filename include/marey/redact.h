// redact.h: a trace without what must not be shared.
#pragma once

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The facts to leave out. Times, names, files and lines stay.
struct Redaction {
    bool values = true;        ///< values of ranges and instants, with arrays and their shapes
    bool command_line = true;  ///< arguments of the processes
    bool host = true;          ///< host names
    bool metadata = true;      ///< facts that the program or another tool added
    bool home = true;          ///< names of home folders in paths: "/home/ann/x.py" becomes "~/x.py"
};

/// Returns the trace without them. Texts that nothing refers to afterwards are gone, too: they are not in
/// saved files. Names that the program made at run time stay as they are, whatever they contain.
MAREY_API Trace redact(const Trace& trace, const Redaction& redaction = {});

}  // namespace marey
