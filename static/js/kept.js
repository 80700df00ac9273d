// Choices that have not reached the server, kept in this browser: a record per person and task,
// {name: {values, at, base}}. Where the browser keeps nothing (full, or forbidden) they live as long as the page.
const kept = (() => {
  const memory = new Map(), PREFIX = "draft:", FOR = 30 * 86_400_000;
  const stamp = (form) => form.querySelector("[data-since]").dataset;
  const keyOf = (form) => `${PREFIX}${stamp(form).user}:${form.dataset.draft}`;

  function stored(key) {
    try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; }
  }

  function read(form) {
    return { ...stored(keyOf(form)), ...memory.get(keyOf(form)) };
  }

  function write(form, choices) {
    const key = keyOf(form);
    memory.delete(key);
    try {
      if (Object.keys(choices).length) localStorage.setItem(key, JSON.stringify(choices));
      else localStorage.removeItem(key);
    } catch {
      if (Object.keys(choices).length) memory.set(key, choices);
    }
  }

  // What another task or person left unsent waits for its return, but not for ever.
  function forgetOld() {
    try {
      for (const key of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
        const newest = Math.max(0, ...Object.values(stored(key)).map(({ at }) => at ?? 0));
        if (newest < Date.now() - FOR) localStorage.removeItem(key);
      }
    } catch { /* nothing is kept here at all */ }
  }

  return { stamp, keyOf, read, write, forgetOld, inMemory: () => memory.size > 0 };
})();
