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
    marey::Range in_flight;  ///< for some documents: from the parser to the index, across threads
};

/// The documents of a block, in order. Malformed documents are skipped and counted in `malformed`.
std::vector<Document> parse_block(std::string_view block, std::uint32_t& malformed);
