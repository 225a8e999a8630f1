#include "tests/unit/server/command_rig.h"

namespace hotkv {

TEST_CASE("HELLO: fields and protocol of the reply") {
  CommandRig rig;
  CHECK(rig("HELLO") ==
        "[$server $redis $version $8.4.0 $proto :2 $id :1 $mode $standalone $role $master $modules "
        "[]]");
  CHECK(rig("HELLO 3") ==
        "{$server $redis $version $8.4.0 $proto :3 $id :1 $mode $standalone $role $master $modules "
        "[]}");
  CHECK(rig("GET none") == "nil");
  CHECK(rig("CONFIG GET appendfsync") == "{$appendfsync $everysec}");
  CHECK(rig("HELLO 2 SETNAME me") ==
        "[$server $redis $version $8.4.0 $proto :2 $id :1 $mode $standalone $role $master $modules "
        "[]]");
  CHECK(rig("CLIENT GETNAME") == "$me");
  CHECK(rig("CONFIG GET appendfsync") == "[$appendfsync $everysec]");
}

TEST_CASE("HELLO: what is wrong with it is said, and nothing is done") {
  CommandRig rig;
  CHECK(rig("HELLO 4") == "-NOPROTO unsupported protocol version");
  CHECK(rig("HELLO 1") == "-NOPROTO unsupported protocol version");
  CHECK(rig("HELLO x") == "-ERR Protocol version is not an integer or out of range");
  CHECK(rig("HELLO 3 AUTH default") == "-ERR Syntax error in HELLO option 'AUTH'");
  CHECK(rig("HELLO 3 FOO") == "-ERR Syntax error in HELLO option 'FOO'");
  CHECK(rig.Call(0, {"HELLO", "3", "SETNAME", "a b"}) ==
        "-ERR Client names cannot contain spaces, newlines or special characters.");
  CHECK(rig("HELLO 3 AUTH nobody x") ==
        "-WRONGPASS invalid username-password pair or user is disabled.");
  CHECK(Contains(rig("CLIENT INFO"), " resp=2 "));
}

TEST_CASE("AUTH: password, user, and what is allowed before") {
  CommandRig rig({.settings = {"--requirepass", "secret"}});
  CHECK(rig("GET k") == "-NOAUTH Authentication required.");
  CHECK(Contains(rig("HELLO 3"),
                 "-NOAUTH HELLO must be called with the client already authenticated"));
  CHECK(rig("AUTH wrong") == "-WRONGPASS invalid username-password pair or user is disabled.");
  CHECK(rig("AUTH nobody secret") ==
        "-WRONGPASS invalid username-password pair or user is disabled.");
  CHECK(rig("AUTH a b c") == "-ERR syntax error");
  CHECK(rig("AUTH secret") == "+OK");
  CHECK(rig("GET k") == "nil");
  CHECK(rig("ACL WHOAMI") == "$default");
  CHECK(rig.As(1, "AUTH default secret") == "+OK");
  CHECK(Contains(rig.As(2, "HELLO 3 AUTH default secret"), "$proto :3"));
  CHECK(rig.Info("stats", "acl_access_denied_auth") == "2");
  CHECK(rig("RESET") == "+RESET");
  CHECK(rig("GET k") == "-NOAUTH Authentication required.");
}

TEST_CASE("AUTH without a password set") {
  CommandRig rig;
  CHECK(rig("AUTH x") ==
        "-ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your "
        "configuration is correct?");
  CHECK(rig("AUTH default x") == "+OK");
}

TEST_CASE("PING, ECHO, SELECT") {
  CommandRig rig;
  CHECK(rig("PING") == "+PONG");
  CHECK(rig("PING hello") == "$hello");
  CHECK(rig("PING a b") == "-ERR wrong number of arguments for 'ping' command");
  CHECK(rig("ECHO hello") == "$hello");
  CHECK(rig("SELECT 15") == "+OK");
  CHECK(Contains(rig("CLIENT INFO"), " db=15 "));
  CHECK(rig("SELECT 16") == "-ERR DB index is out of range");
  CHECK(rig("SELECT -1") == "-ERR DB index is out of range");
  CHECK(rig("SELECT x") == "-ERR value is not an integer or out of range");
  CHECK(rig("SELECT 99999999999") ==
        "-ERR value is out of range, value must between -2147483648 and 2147483647");
}

TEST_CASE("RESET: everything about the connection is as it was at first") {
  CommandRig rig;
  rig("HELLO 3 SETNAME me");
  rig("SELECT 3");
  rig("WATCH k");
  rig("CLIENT NO-EVICT ON");
  rig("CLIENT NO-TOUCH ON");
  rig("MULTI");
  rig("SET k v");
  CHECK(rig("RESET") == "+RESET");
  CHECK(rig("EXEC") == "-ERR EXEC without MULTI");
  const std::string info = rig("CLIENT INFO");
  CHECK(Contains(info, " name= "));
  CHECK(Contains(info, " db=0 "));
  CHECK(Contains(info, " resp=2 "));
  CHECK(Contains(info, " watch=0 "));
  CHECK(Contains(info, " flags=N "));
  CHECK(rig("EXISTS k") == ":0");
}

TEST_CASE("QUIT: an answer, then the end; also inside MULTI") {
  CommandRig rig;
  CHECK(rig("MULTI") == "+OK");
  CHECK(rig("QUIT") == "+OK");
  CHECK(rig("PING") == "closed");
  CHECK(rig.As(1, "PING") == "+PONG");
}

}  // namespace hotkv
