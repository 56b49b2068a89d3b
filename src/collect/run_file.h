// run_file.h: the packed captures of a process tree in one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "record/raw_log.h"

namespace marey {

/// A capture or saved trace: a whole file, or a part of a run file.
struct RunMember {
    std::string name;  ///< for errors: the path, and the process if the file has several
    std::shared_ptr<const MappedFile> file;
    std::span<const std::byte> bytes;
};

/// Whether a file that begins with these bytes is a run file.
bool is_run_file(std::span<const std::byte> head) noexcept;

struct RunContents {
    std::string tree;  ///< its id in hexadecimal
    std::vector<RunMember> members;
    std::vector<std::string> damage;  ///< a sentence for each part that cannot be read
};
/// Lists the intact members. Throws marey::Error if the header is damaged or a newer Marey wrote it.
RunContents read_run_file(const std::shared_ptr<const MappedFile>& file, const std::string& path);

/// The log of a member that is a capture.
RawLog read_member(const RunMember& member, bool with_records = true);

/// The header of a run file, and a member as its section.
std::vector<std::byte> tree_header(const std::string& tree);
std::vector<std::byte> tree_section(std::int64_t pid, std::span<const std::byte> packed);

}  // namespace marey
