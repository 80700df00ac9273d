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

// What is kept is shown instead of an error, and instead of waiting long.
async function answered(request, path) {
  const answer = fetch(request), late = new Promise((over) => setTimeout(over, LONGEST_WAIT, null));
  const first = await (PAGES.test(path) ? Promise.race([answer, late]) : answer).catch(() => null);
  if (first && first.status < 502) return first;
  return (await kept(request, path)) ?? answer;
}

// Nothing of a person stays in the browser once they have logged out.
async function forget() {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
  for (const { name } of (await indexedDB.databases?.()) ?? []) {
    if (!name.startsWith(PREFIX)) continue;
    await new Promise((done) => {
      const opening = indexedDB.open(name);
      opening.onerror = done;
      opening.onsuccess = () => {
        const db = opening.result, rows = db.objectStoreNames.contains("ready") && db.transaction("ready", "readwrite");
        if (rows) rows.objectStore("ready").clear();
        if (rows) rows.oncomplete = done;
        else done();
        db.close();
      };
    });
  }
}

addEventListener("fetch", (event) => {
  const { request } = event, { origin, pathname } = new URL(request.url);
  if (origin !== location.origin) return;
  // A login in the dialog over a task is no navigation: it is most likely the same person's.
  const isOver = pathname.endsWith("/logout/") || (pathname.endsWith("/login/") && request.mode === "navigate");
  if (request.method === "POST" && isOver) event.waitUntil(forget());
  // Sent by a page as it is closed: a worker that leaves it to that page loses it now and then.
  else if (request.keepalive) event.respondWith(fetch(request));
  else if (request.method === "GET" && (PAGES.test(pathname) || pathname.startsWith("/static/"))) event.respondWith(answered(request, pathname));
});
