// validate_file.cpp: marey::validate_file: checks files of any format; the text of Chrome JSON is checked
// first.
#include <marey/validate.h>

#include <algorithm>
#include <memory>

#include <marey/error.h>
#include <marey/import.h>

#include "analyze/finding_list.h"
#include "base/mapped_file.h"
#include "formats/chrome/check.h"
#include "formats/file_header.h"
#include "json/input_text.h"

namespace marey {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_gzip(std::string_view text) {
    return text.starts_with("\x1f\x8b");
}

std::string unpacked(const std::string& path) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const std::unique_ptr<ByteSource> source = open_source(path);
    std::string text;
    while (true) {
        const std::size_t old = text.size();
        text.resize(old + kPiece);
        const std::size_t count = source->read(text.data() + old, kPiece);
        text.resize(old + count);
        if (count != 0) continue;
        if (!source->damage().empty()) throw Error(path + ": " + source->damage());
        return text;
    }
}

bool is_known(std::span<const std::byte> head) {
    return std::any_of(import_formats().begin(), import_formats().end(),
                       [&](const ImportFormat& format) { return format.recognizes(head); });
}

}  // namespace

std::vector<Finding> validate_file(const std::string& path, std::string_view format) {
    const std::vector<std::byte> head = read_file_head(path);
    FindingList findings;
    const bool is_json = format.empty() ? looks_like_json(head) : format == "chrome";
    if (!is_json) return validate(open_trace(path, format));
    {
        const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
        const std::string_view bytes = text_of(file->bytes());
        if (is_gzip(bytes)) {
            check_chrome_json(unpacked(path), findings);
        } else {
            check_chrome_json(bytes, findings);
        }
    }
    // The imported trace must satisfy the rules for all traces too. The importer may fail on a broken file.
    std::vector<Finding> found = findings.take();
    if (format.empty() && !is_known(head)) return found;
    const bool is_broken = std::any_of(found.begin(), found.end(),
                                       [](const Finding& each) { return each.rule == "strict_json"; });
    FindingList all;
    all.merge(found);
    try {
        all.merge(validate(open_trace(path, format)));
    } catch (const Error&) {
        if (!is_broken) throw;
    }
    return all.take();
}

}  // namespace marey
