// document.cpp: the parser: blocks to documents, documents to header and paragraphs.
#include "document.h"

#include <charconv>
#include <optional>

namespace {

/// Takes everything up to `mark` off the front of `text`, and the mark too.
std::string_view take_until(std::string_view& text, std::string_view mark) {
    const std::size_t end = text.find(mark);
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + mark.size());
    return taken;
}

bool parse_number(std::string_view text, std::uint32_t& number) {
    return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

bool parse_header(std::string_view header, Document& document) {
    MAREY_RANGE("parse header");
    bool has_id = false;
    while (!header.empty()) {
        std::string_view line = take_until(header, "\n");
        const std::string_view key = take_until(line, ": ");
        if (key == "id") has_id = parse_number(line, document.id);
        if (key == "topic" && !parse_number(line, document.topic)) return false;
        if (key == "title") document.title = line;
    }
    return has_id;
}

std::optional<Document> parse_document(std::string_view text) {
    MAREY_RANGE("parse document", "bytes", text.size());
    Document document;
    if (!parse_header(take_until(text, "\n\n"), document)) return std::nullopt;
    MAREY_RANGE("split paragraphs");
    while (!text.empty()) {
        const std::string_view paragraph = take_until(text, "\n\n");
        if (!paragraph.empty()) document.paragraphs.emplace_back(paragraph);
    }
    return document;
}

}  // namespace

std::vector<Document> parse_block(std::string_view block, std::uint32_t& malformed) {
    MAREY_FUNCTION("bytes", block.size());
    std::vector<Document> documents;
    while (!block.empty()) {
        if (auto document = parse_document(take_until(block, "%%\n"))) {
            documents.push_back(std::move(*document));
        } else {
            ++malformed;
            marey::instant("malformed document", "left", block.size());
        }
    }
    return documents;
}
