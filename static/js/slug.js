// Proposes the name in addresses while the project's name is typed, until somebody types one of their own.
for (const slug of document.querySelectorAll("[data-slug-of]")) {
  const name = document.getElementById(slug.dataset.slugOf);
  let proposed = slug.value;
  const propose = () => {
    if (slug.value !== proposed) return;
    const plain = name.value.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
    slug.value = proposed = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 50);
  };
  name.addEventListener("input", propose);
  if (!slug.value) propose();  // typed before this script had come
}
