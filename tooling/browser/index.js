export { bundlePage } from "./bundle.js";
export { whyNoLavapipe } from "./lavapipe.js";
export { openBrowser } from "./open-browser.js";
export { openPage } from "./open-page.js";
export { servePages, strictPolicy } from "./serve-pages.js";
