/* console/session.js: who looks at this page
 *
 * A ticket behind the "#" of the address, which browsers send to nobody, opens a session, once, and goes from the
 * address at once. Or a person types a token that they have. Either is kept by this tab alone, until it is closed.
 */
import { Api } from "./api.js";

const PLACE = "cloche.session";
const TICKET = /^#ticket=(cloche_console_[0-9a-f]{64})$/;
const TOKEN = /^cloche_(operator|approver|auditor)_[0-9a-f]{64}$/;

export const RIGHTS = {
    operator: { boxes: true, act: true, audit: true, decide: true },
    approver: { boxes: false, act: false, audit: false, decide: true },
    auditor: { boxes: true, act: false, audit: true, decide: false },
};

function keep(session) {
    sessionStorage.setItem(PLACE, JSON.stringify(session));
    return session;
}

export function kept() {
    try {
        const said = JSON.parse(sessionStorage.getItem(PLACE));
        return said !== null && TOKEN.test(said.token) && said.role in RIGHTS ? said : null;
    } catch {
        return null;
    }
}

export function forget() {
    sessionStorage.removeItem(PLACE);
}

/* The ticket of the address, which is in it no more, but @hash; "" for what is none, null where none is said. */
export function ticket(hash) {
    const found = TICKET.exec(location.hash);
    if (!location.hash.startsWith("#ticket="))
        return null;
    history.replaceState(null, "", location.pathname + hash);
    return found ? found[1] : "";
}

export async function open(text) {
    const said = await new Api("").ask("POST", "/v1/console/open", { ticket: text });
    return keep({ token: said.token, id: said.id, role: said.role, expires_ms: said.expires_ms });
}

/* A token that was typed: looked whether it opens something. */
export async function take(text) {
    const found = TOKEN.exec(text.trim());
    if (found === null)
        throw new Error("That is no token of an operator, approver or auditor. Agents' tokens and sandboxes' keys open nothing here.");
    await new Api(found[0]).get("/v1/approvals?limit=1");
    return keep({ token: found[0], id: null, role: found[1], expires_ms: null });
}

/* The session is ended where its role may do that; a typed token is its person's, and stays. */
export async function leave(session) {
    if (session.id !== null && session.role === "operator")
        await new Api(session.token).ask("DELETE", `/v1/tokens/${session.id}`).catch(() => {});
}
