/* front/desktop_page.h: the page at /desktop and its script, inside ours: each a text, ended by a NUL */
#ifndef CLOCHE_FRONT_DESKTOP_PAGE_H
#define CLOCHE_FRONT_DESKTOP_PAGE_H

extern const char desktop_page[], desktop_script[];

#endif
