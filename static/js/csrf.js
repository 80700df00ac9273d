// Logging in again in another tab renews the token, so forms send the present one, not the one that they were made
// with. The event is captured: htmx collects the form's fields when it gets to the form.
export const freshToken = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? "";

document.addEventListener("submit", (event) => {
  const field = event.target.elements.csrfmiddlewaretoken;
  if (field && freshToken()) field.value = freshToken();
}, { capture: true });
