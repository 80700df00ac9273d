// Whether keys go into the element as text, or choose in it, instead of being those of the page.
export const typing = (target) => target.matches("textarea, select, input:not([type=radio], [type=checkbox], .cell)");
