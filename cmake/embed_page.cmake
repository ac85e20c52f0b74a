# cmake -DOUT=FOLDER -P embed_page.cmake: the page that inspect/html.cpp writes around a graph, as arrays of C++ strings to
# include: OUT/kHtml.inc, OUT/kCss.inc and OUT/kJs.inc.
set(page ${CMAKE_CURRENT_LIST_DIR}/../runtime/cgrt/inspect/page)
set(kHtml page.html)
set(kCss page.css)
# One script, in this order.
set(kJs graph.js times.js text.js layout.js levels.js colours.js drawing.js selection.js details.js input.js)
foreach(name IN ITEMS kHtml kCss kJs)
  set(code "")
  foreach(file IN LISTS ${name})
    file(READ ${page}/${file} text)
    string(APPEND code "R\"embedded(${text})embedded\",\n")
  endforeach()
  file(WRITE ${OUT}/${name}.inc "constexpr std::string_view ${name}[] = {\n${code}};\n")
endforeach()
