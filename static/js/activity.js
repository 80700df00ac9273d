// Counts the seconds of work: input within the last minute, in a visible page. Work renews the lease.
import { freshToken } from "./csrf.js";

const IDLE = 60_000, RENEW = 60_000;
let lastInput = Date.now(), lastTick = Date.now(), lastRenewal = Date.now();

// Captured, as a script that stops an event on its way would hide the activity.
for (const name of ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "touchstart"]) {
  document.addEventListener(name, () => { lastInput = Date.now(); }, { passive: true, capture: true });
}

setInterval(() => {
  const now = Date.now(), passed = now - lastTick;
  lastTick = now;
  const form = document.querySelector("form[data-heartbeat]");
  if (!form || document.hidden || now - lastInput > IDLE) return;
  const seconds = form.elements.active_seconds;
  // A machine that slept makes one long tick, which was no work; a clock that was put back makes a negative one.
  if (passed > 0 && passed < 5000) seconds.value = (Number(seconds.value || 0) + passed / 1000).toFixed(1);
  if (now - lastRenewal < RENEW) return;
  lastRenewal = now;
  const headers = { "X-CSRFToken": freshToken() };
  // A redirect leads to the login page, which nobody would see here.
  fetch(form.dataset.heartbeat, { method: "POST", headers, redirect: "manual" }).catch(() => {});
}, 1000);
