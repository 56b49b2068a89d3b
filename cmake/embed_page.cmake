# embed_page.cmake: writes files as a C++ file: cmake -DFILES=a;b -DOUT=page.cpp -P embed_page.cmake
set(arrays "")
set(entries "")
set(number 0)
foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    file(READ "${file}" digits HEX)
    file(SIZE "${file}" size)
    string(REGEX REPLACE "(................................)" "\\1\n" digits "${digits}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
    string(APPEND arrays "const unsigned char kFile${number}[] = {\n${bytes}0};\n")
    string(APPEND entries
           "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), ${size}}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "// page.cpp: made from web/dist/ by cmake/embed_page.cmake.
#include \"serve/page.h\"

namespace marey::serve {
namespace {
${arrays}
const PageFile kFiles[] = {
${entries}};
}  // namespace

std::span<const PageFile> page_files() noexcept {
    return kFiles;
}
}  // namespace marey::serve
")
