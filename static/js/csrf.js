// Logging in again, in another tab, renews the token: forms send the one of now, not the one they were made with.
export const freshToken = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? "";

document.addEventListener("submit", (event) => {
  const field = event.target.elements.csrfmiddlewaretoken;
  if (field && freshToken()) field.value = freshToken();
}, { capture: true });
