// page.h: the files of the page, which the build embeds from web/dist/.
#pragma once

#include <span>
#include <string_view>

namespace marey::serve {

struct PageFile {
    std::string_view name;
    std::string_view bytes;
};

/// Every file of web/dist/.
std::span<const PageFile> page_files() noexcept;

}  // namespace marey::serve
