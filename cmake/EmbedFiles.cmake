# sluice_embed(OUT.cc NAMESPACE name=file…): a source file with each file's bytes as a string literal, and OUT.h that
# declares them: `namespace NAMESPACE { extern const std::string_view name; }`. Made anew when a file changes.
function(sluice_embed output namespace)
  set(files)
  foreach(pair IN LISTS ARGN)
    string(REGEX REPLACE "^[^=]+=" "" file "${pair}")
    list(APPEND files "${file}")
  endforeach()
  string(REGEX REPLACE "\\.cc$" ".h" header "${output}")
  add_custom_command(
    OUTPUT "${output}" "${header}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DHEADER=${header}" "-DNAMESPACE=${namespace}" "-DPAIRS=${ARGN}" -P
            "${PROJECT_SOURCE_DIR}/cmake/embed_files_step.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed_files_step.cmake"
    VERBATIM)
endfunction()
