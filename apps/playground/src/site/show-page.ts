import { render, type VNode } from "preact";

/** Shows a page in the place of the line that says that it has not started. */
export function showPage(page: VNode): void {
  const place = document.getElementById("page") as HTMLElement;
  place.replaceChildren();
  render(page, place);
}
