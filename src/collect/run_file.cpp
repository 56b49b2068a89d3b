// run_file.cpp: a header, then sections: each a packed capture with its length and checksum.
#include "collect/run_file.h"

#include <cstring>

#include <marey/detail/log_format.h>
#include <marey/error.h>

#include "base/checksum.h"
#include "base/process_text.h"
#include "collect/capture_reader.h"
#include "collect/log_records.h"

namespace marey {
namespace {

constexpr char kTreeMagic[8] = {'M', 'A', 'R', 'E', 'Y', 'T', 'R', 'E'};
constexpr std::uint32_t kTreeVersion = 1;
constexpr std::uint32_t kSectionMagic = 0x5352414d;  // "MARS"

struct TreeHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t byte_order;
    std::uint32_t header_bytes;
    std::uint32_t reserved;
    std::uint8_t tree[16];
};
struct SectionHeader {
    std::uint32_t magic;
    std::uint32_t header_bytes;
    std::uint64_t bytes;     ///< of the packed capture, which follows, padded to 8
    std::uint64_t checksum;  ///< of those bytes
    std::int64_t pid;
};

template <class T>
std::vector<std::byte> bytes_of(const T& header) {
    std::vector<std::byte> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

}  // namespace

bool is_run_file(std::span<const std::byte> head) noexcept {
    return head.size() >= sizeof kTreeMagic && std::memcmp(head.data(), kTreeMagic, sizeof kTreeMagic) == 0;
}

RunContents read_run_file(const std::shared_ptr<const MappedFile>& file, const std::string& path) {
    const std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() < sizeof(TreeHeader)) throw Error(path + ": truncated in its header");
    const auto header = read_as<TreeHeader>(bytes.data());
    if (header.byte_order != detail::kByteOrderMark)
        throw Error(path + ": written on a machine with a different byte order, or damaged");
    if (header.version > kTreeVersion)
        throw Error(path + ": written by a newer Marey (tree format " + std::to_string(header.version) + ")");
    if (header.version == 0 || header.header_bytes < sizeof header || header.header_bytes > bytes.size())
        throw Error(path + ": damaged header");
    RunContents contents;
    contents.tree = tree_text(header.tree);
    for (std::size_t at = header.header_bytes; at < bytes.size();) {
        const std::span<const std::byte> rest = bytes.subspan(at);
        SectionHeader section{};
        if (rest.size() >= sizeof section) section = read_as<SectionHeader>(rest.data());
        const bool is_whole = section.magic == kSectionMagic && section.header_bytes >= sizeof section &&
                              section.header_bytes <= rest.size() &&
                              section.bytes <= rest.size() - section.header_bytes;
        if (!is_whole) {
            contents.damage.push_back(path + ": cut off, or damaged, after " +
                                      std::to_string(contents.members.size()) + " processes");
            break;
        }
        const auto packed = rest.subspan(section.header_bytes, section.bytes);
        const std::string name = path + ": process " + std::to_string(section.pid);
        if (checksum64(packed) != section.checksum) {
            contents.damage.push_back(name + ": damaged");
        } else {
            contents.members.push_back({name, file, packed});
        }
        at += section.header_bytes + (section.bytes + 7) / 8 * 8;
    }
    return contents;
}

RawLog read_member(const RunMember& member, bool with_records) {
    if (member.bytes.data() == member.file->bytes().data())
        return read_capture(member.file, member.name, with_records);
    return read_capture_bytes(member.bytes, member.file, member.name, with_records);
}

std::vector<std::byte> tree_header(const std::string& tree) {
    TreeHeader header{};
    std::memcpy(header.magic, kTreeMagic, sizeof header.magic);
    header.version = kTreeVersion;
    header.byte_order = detail::kByteOrderMark;
    header.header_bytes = sizeof header;
    for (std::size_t i = 0; i < sizeof header.tree && 2 * i + 1 < tree.size(); ++i)
        header.tree[i] = static_cast<std::uint8_t>(std::stoul(tree.substr(2 * i, 2), nullptr, 16));
    return bytes_of(header);
}

std::vector<std::byte> tree_section(std::int64_t pid, std::span<const std::byte> packed) {
    SectionHeader header{};
    header.magic = kSectionMagic;
    header.header_bytes = sizeof header;
    header.bytes = packed.size();
    header.checksum = checksum64(packed);
    header.pid = pid;
    std::vector<std::byte> bytes = bytes_of(header);
    bytes.insert(bytes.end(), packed.begin(), packed.end());
    bytes.resize((bytes.size() + 7) / 8 * 8);
    return bytes;
}

}  // namespace marey
