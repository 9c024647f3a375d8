/* console/main.js: which view is seen, and who sees it */
import { Api } from "./api.js";
import { Inbox } from "./approvals.js";
import * as approvals from "./approvals.js";
import * as audit from "./audit.js";
import * as egress from "./egress.js";
import * as sandboxes from "./sandboxes.js";
import * as terminal from "./terminal.js";
import { button, clear, el, field } from "./dom.js";
import { RIGHTS, forget, kept, leave, open, take, ticket } from "./session.js";

/* In their order: the address, the name, the view, and the right that it takes. */
const VIEWS = [
    ["sandboxes", "Sandboxes", sandboxes, "boxes"], ["approvals", "Approvals", approvals, null], ["audit", "Audit", audit, "audit"],
    ["egress", "Egress", egress, "audit"], ["terminal", "Terminal", terminal, "act"],
];

const root = document.getElementById("view"), nav = document.getElementById("nav"), who = document.getElementById("who"), line = document.getElementById("say");

let current = null;         /* the session that is seen: how its view turns, and how it stops */

function say(text) {
    line.textContent = text.slice(0, 400);
    line.hidden = text === "";
}

/* --- without a session --- */

function door(why) {
    const input = el("input"), form = el("form", "door");
    input.type = "password";
    input.autocomplete = "off";
    input.required = true;
    form.append(el("h1", "", "cloche console"), el("p", "", "Run ", el("code", "", "cloche console"), " where the daemon runs: it prints an address that opens this page for you, once."),
                el("p", "quiet", "Or sign in with a token of an operator, approver or auditor. It is kept by this tab until you close it."),
                field("Token", input), el("p", "buttons", submit("Sign in")));
    form.addEventListener("submit", async (e) => {
        e.preventDefault();
        try {
            begin(await take(input.value));
        } catch (error) {
            say(error.message);
        }
        input.value = "";
    });
    clear(nav);
    clear(who);
    clear(root, form);
    say(why);
    input.focus();
}

function submit(label) {
    const made = el("button", "approve", label);
    made.type = "submit";
    return made;
}

/* --- with one --- */

function begin(session) {
    const rights = RIGHTS[session.role], links = new Map();
    let close = () => {}, over = false;
    const stop = () => {
        over = true;
        current = null;
        close();
        inbox.end();
        document.title = "cloche console";
    };
    const end = (why) => {
        if (over)
            return;
        stop();
        forget();
        history.replaceState(null, "", location.pathname);
        door(why);
    };
    const api = new Api(session.token, (why) => end(`Your session is over: ${why.message}`));
    const inbox = new Inbox(api), ctx = { api, rights, inbox, say: (text) => over || say(text) };
    const views = VIEWS.filter(([, , , right]) => right === null || rights[right]);

    const turn = () => {
        const [name, ...rest] = location.hash.slice(1).split("/");
        const [at, , view] = views.find(([n]) => n === name) || views[0];
        close();
        say("");
        clear(root);
        for (const [n, link] of links)
            if (n === at)
                link.setAttribute("aria-current", "page");
            else
                link.removeAttribute("aria-current");
        close = view.open(ctx, root, rest[0]) || (() => {});
    };

    clear(nav);
    for (const [name, title] of views) {
        const link = el("a", "", title);
        link.href = `#${name}`;
        links.set(name, link);
        nav.append(link);
    }
    const badge = el("b", "badge");
    links.get("approvals").append(" ", badge);
    inbox.told.add((changed) => {
        const n = changed || badge.textContent !== "" ? [...inbox.open.values()].filter((a) => a.until > performance.now()).length : 0;
        badge.textContent = n > 0 ? String(n) : "";
        badge.hidden = n === 0;
        document.title = n > 0 ? `(${n}) cloche console` : "cloche console";
    });
    badge.hidden = true;
    clear(who, el("span", "quiet", session.role), button("Sign out", "", () => {
        end("You are signed out.");
        leave(session);
    }));
    current = { session, stop, turn };
    turn();
}

/* A session by a ticket, in the place of the one that is seen; where it opens nothing, that one stays. */
async function enter(text) {
    let session;
    try {
        session = await open(text);
    } catch (e) {
        return current !== null ? say(e.message) : door(e.message);
    }
    const former = current;
    if (former !== null) {
        former.stop();
        leave(former.session);
    }
    return begin(session);
}

/* An address with a ticket may come at any time: typed or pasted into a tab that has this page open, browsers load nothing. */
window.addEventListener("hashchange", (e) => {
    const was = new URL(e.oldURL).hash, found = ticket(was.startsWith("#ticket=") ? "" : was);
    if (found !== null)
        enter(found);
    else if (current !== null)
        current.turn();
});

const first = ticket(""), session = first === null ? kept() : null;
if (first !== null) {
    forget();
    enter(first);
} else if (session !== null) {
    begin(session);
} else {
    door("");
}
