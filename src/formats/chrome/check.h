// check.h: checks the text of a Chrome trace against the rules of the format, including errors that
// the importer would correct or skip.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "analyze/finding_list.h"

namespace marey {

/// Whether a file that begins with these bytes looks like JSON.
bool looks_like_json(std::span<const std::byte> head) noexcept;

/// Adds a finding for each error in the text of a whole file. Uses memory for the times of its events and the
/// ids of its flows.
void check_chrome_json(std::string_view text, FindingList& findings);

}  // namespace marey
