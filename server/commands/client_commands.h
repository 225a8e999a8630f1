// What HELLO and RESET share with the CLIENT family.
//
// Thread rules: handlers run on the client's worker. Other clients are looked at through the
// ClientRegistry.
#pragma once

#include <string_view>

namespace hotkv {

class Client;

inline constexpr std::string_view kBadClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// Printable ASCII without blanks: CLIENT LIST separates its fields by blanks.
bool IsClientAttribute(std::string_view text);
void SetClientName(Client& client, std::string_view name);

}  // namespace hotkv
