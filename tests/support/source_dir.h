// Where the checkout lies that the tests were built from: for test data and documents.
#pragma once

#include <string>

namespace hotkv {

// path: relative to the checkout's top level. Absolute result.
std::string SourcePath(const std::string& path);

}  // namespace hotkv
