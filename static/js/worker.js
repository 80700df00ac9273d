// Shows the rating page, its files and the guidelines while the server is away, as that page has kept them.
const PAGES = /^\/projects\/[^/]+\/(annotate|guidelines)\/$/, PREFIX = "shift-", LONGEST_WAIT = 5000;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

async function kept(request, path) {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX));
  const wanted = request.headers.get("HX-Request") ? `${path}?fragment` : PAGES.test(path) ? path : request.url;
  for (const name of names) {
    const answer = await (await caches.open(name)).match(wanted);
    if (answer) return answer;
  }
  return null;
}

async function answered(request, path) {
  const page = PAGES.test(path);
  try {
    // A navigation's signal cannot be set: its request is read again.
    const answer = page ? await Promise.race([fetch(request), new Promise((_, late) => setTimeout(late, LONGEST_WAIT))]) : await fetch(request);
    return (answer.status >= 502 && (await kept(request, path))) || answer;
  } catch {
    return (await kept(request, path)) ?? Response.error();
  }
}

// Nothing of a person stays in the browser once they have logged out.
async function forget() {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
  for (const { name } of (await indexedDB.databases?.()) ?? []) {
    if (!name.startsWith(PREFIX)) continue;
    const opening = indexedDB.open(name);
    opening.onsuccess = () => {
      const db = opening.result;
      if (db.objectStoreNames.contains("ready")) db.transaction("ready", "readwrite").objectStore("ready").clear();
      db.close();
    };
  }
}

addEventListener("fetch", (event) => {
  const { request } = event, { origin, pathname } = new URL(request.url);
  if (origin !== location.origin) return;
  if (request.method === "POST" && pathname.endsWith("/logout/")) event.waitUntil(forget());
  else if (request.method === "GET" && (PAGES.test(pathname) || pathname.startsWith("/static/"))) event.respondWith(answered(request, pathname));
});
