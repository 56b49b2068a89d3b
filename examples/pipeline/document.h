// document.h: a document and how it is read from raw text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/marey.h>

struct Document {
    std::uint32_t id = 0;
    std::uint32_t topic = 0;
    std::string title;
    std::vector<std::string> paragraphs;
    marey::Range in_flight;  ///< of some: from the parser to the index, so from one thread to another
};

/// The documents of a block, in order. What does not look like a document is skipped and counted in
/// `malformed`.
std::vector<Document> parse_block(std::string_view block, std::uint32_t& malformed);
