// validate_file.cpp: marey::validate_file: checks files of any format; Chrome JSON while it is read.
#include <marey/validate.h>

#include <marey/error.h>
#include <marey/import.h>

#include "analyze/finding_list.h"
#include "formats/chrome/findings.h"
#include "formats/chrome/read.h"
#include "formats/file_header.h"

namespace marey {

std::vector<Finding> validate_file(const std::string& path, std::string_view format) {
    if (format.empty()) {
        const FileFormat* const known = detect_format(path);
        if (known != nullptr) format = known->name;
    }
    if (format != "chrome") return validate(open_trace(path, format));
    std::string damage;
    const std::string text = read_whole_file(path, damage);
    if (!damage.empty()) throw Error(path + ": " + damage);
    FindingList findings;
    const bool is_strict = check_json(text, findings);
    try {
        findings.merge(validate(read_chrome_json(path, memory_source(text), 128 << 10, &findings)));
    } catch (const Error&) {
        if (is_strict) throw;
    }
    return findings.take();
}

}  // namespace marey
