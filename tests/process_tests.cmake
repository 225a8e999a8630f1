# Tests that drive real executables from outside. Each line is one test of ctest's; names start with what they test.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
# python3-redis is a Debian package: it is only seen by Debian's interpreter.
set(HOTKV_PYTHON /usr/bin/python3)
if(NOT EXISTS ${HOTKV_PYTHON})
  set(HOTKV_PYTHON ${Python3_EXECUTABLE})
endif()

set(HOTKV_SANITIZED "")
if(HOTKV_SANITIZE)
  set(HOTKV_SANITIZED ${HOTKV_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/support/sanitized.py
    --suppressions ${CMAKE_CURRENT_SOURCE_DIR}/sanitizers)
endif()

function(hotkv_process_test name timeout)
  math(EXPR timeout "${timeout} * ${HOTKV_TIME_FACTOR}")
  add_test(NAME ${name} COMMAND ${HOTKV_SANITIZED} ${HOTKV_PYTHON} -B ${ARGN})
  set(environment HOTKV_TIME_FACTOR=${HOTKV_TIME_FACTOR})
  if(HOTKV_SANITIZE MATCHES "thread")  # TSan does not see the kernel's side of a ring
    list(APPEND environment "HOTKV_SERVER_OPTIONS=--io epoll")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
endfunction()

# The scripts themselves: house rules, and that the kill -9 driver can fail.
hotkv_process_test(lint 300 ${CMAKE_SOURCE_DIR}/tools/lint --fast)
hotkv_process_test(skipped_tests_show 60 ${CMAKE_CURRENT_SOURCE_DIR}/support/skipped_test.py)
hotkv_process_test(lint_itself 60 ${CMAKE_CURRENT_SOURCE_DIR}/support/lint_test.py)
hotkv_process_test(ann_figures 60 ${CMAKE_CURRENT_SOURCE_DIR}/support/ann_figures_test.py)
if(HOTKV_SANITIZE)  # and that a report fails a test that does not look at its process
  hotkv_process_test(sanitized_reports 60 ${CMAKE_CURRENT_SOURCE_DIR}/support/sanitized_test.py
    --program $<TARGET_FILE:test_base>)
endif()
hotkv_process_test(kill9_finds_faults 300 ${CMAKE_CURRENT_SOURCE_DIR}/crash/kill9.py --self-test)

if(TARGET hotkv-server)
  set(server --server $<TARGET_FILE:hotkv-server>)
  # The sanitizers make the server several times slower: one mode of the compatibility runner, fewer kills.
  set(compat_modes plain,pipelined,fragmented)
  set(kill_rounds 20)
  if(HOTKV_SANITIZE)
    set(compat_modes pipelined)
    set(kill_rounds 6)
  endif()

  file(GLOB scripts CONFIGURE_DEPENDS compat/*.resp)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    hotkv_process_test(compat_${name} 300 ${CMAKE_CURRENT_SOURCE_DIR}/compat/run.py ${server}
      --modes ${compat_modes} ${script})
  endforeach()

  hotkv_process_test(reports 600 ${CMAKE_CURRENT_SOURCE_DIR}/compat/reports.py ${server})

  foreach(client cli python node ioredis)
    hotkv_process_test(clients_${client} 180 ${CMAKE_CURRENT_SOURCE_DIR}/clients/run.py ${server} --client ${client})
  endforeach()

  hotkv_process_test(golden_vectors 120 ${CMAKE_CURRENT_SOURCE_DIR}/golden/vectors.py ${server})
  hotkv_process_test(manners 600 ${CMAKE_CURRENT_SOURCE_DIR}/process/manners.py ${server})
  hotkv_process_test(storm 300 ${CMAKE_CURRENT_SOURCE_DIR}/process/storm.py ${server})
  set_tests_properties(storm PROPERTIES PROCESSORS 2)
  hotkv_process_test(kill9 900 ${CMAKE_CURRENT_SOURCE_DIR}/crash/kill9.py ${server} --rounds ${kill_rounds} --seed 1)
  set_tests_properties(kill9 PROPERTIES PROCESSORS 2)
  hotkv_process_test(vector_kill9 300 ${CMAKE_CURRENT_SOURCE_DIR}/crash/vector_kill9.py ${server} --rounds 6)
  hotkv_process_test(bench_smoke 300 ${CMAKE_CURRENT_SOURCE_DIR}/support/bench_smoke.py ${server}
    --bench $<TARGET_FILE:hotkv-bench> --data ${CMAKE_CURRENT_SOURCE_DIR}/data/wordnet-cbag-384-small)
  # With the libraries where their programs are built (HOTKV_BENCH), else with HotKV alone.
  hotkv_process_test(bench_ann 300 ${CMAKE_SOURCE_DIR}/bench/ann/run --bin $<TARGET_FILE_DIR:hotkv-server>
    --data ${CMAKE_CURRENT_SOURCE_DIR}/data/wordnet-cbag-384-small --rounds 1 --seconds 0.05 --efs 10,40,200
    --clients 1,2 --recall-min 0.95)
  # What was acknowledged is in the first answer; how soon it comes is not looked at.
  hotkv_process_test(bench_restart 180 ${CMAKE_SOURCE_DIR}/bench/restart --bin $<TARGET_FILE_DIR:hotkv-server> --runs 3)
endif()

if(TARGET hotkv-tool)
  set(tool_options --tool $<TARGET_FILE:hotkv-tool>)
  if(TARGET hotkv-server)
    list(APPEND tool_options --server $<TARGET_FILE:hotkv-server>)
  endif()
  if(TARGET hotkv-server)
    hotkv_process_test(kill_storm 600 ${CMAKE_CURRENT_SOURCE_DIR}/crash/kill_storm.py ${tool_options})
    set_tests_properties(kill_storm PROPERTIES PROCESSORS 2)
  endif()
  foreach(case damaged errors expiry killed offline readonly rebuild redis strings vectors vectorsets)
    hotkv_process_test(tool_${case} 300 ${CMAKE_CURRENT_SOURCE_DIR}/tool/tool_test.py ${tool_options} ${case})
  endforeach()
endif()
