/* match/computer_name.c: see computer_name.h */
#include "match/computer_name.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

/* By the words of OpenAI's models. */
static const struct { const char *alias, *button, *name; } rows[] = {
    { "move", NULL, "mouse_move" }, { "keypress", NULL, "key" }, { "drag", NULL, "left_click_drag" },
    { "click", "left", "left_click" }, { "click", "right", "right_click" }, { "click", "wheel", "middle_click" },
    { "click", "middle", "middle_click" }, { "click", "back", "back_click" }, { "click", "forward", "forward_click" },
};

const char *
computer_name(const char *name, const char *button)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].alias, name) == 0 && (rows[i].button == NULL || strcmp(rows[i].button, button != NULL
                                                                                  ? button : "left") == 0))
            return rows[i].name;
    return computer_alias(name) == NULL ? name : NULL;
}

const char *
computer_alias(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].alias, name) == 0)
            return rows[i].button == NULL ? rows[i].name
                   : "left_click, right_click, middle_click, back_click or forward_click";
    return NULL;
}
