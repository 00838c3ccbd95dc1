// The fonts of the reader's system: the site loads nothing from elsewhere.
import "./wide.css";

export { default } from "vitepress/theme-without-fonts";
