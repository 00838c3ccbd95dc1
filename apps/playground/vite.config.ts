import { defaultClientConditions, type UserConfig } from "vite";
import { digitsAsset } from "./digits-asset.js";
import { contentSecurityPolicy } from "./src/site/content-security-policy.js";

/** The pages by the names of their scripts. */
const pages = {
  formats: "index.html",
  train: "train.html",
  inside: "inside.html",
  file: "file.html",
  device: "device.html",
};

const policy = {
  "Content-Security-Policy": contentSecurityPolicy,
};

const config: UserConfig = {
  // Links are relative: the folder works below any path.
  base: "./",
  resolve: { conditions: ["@halfstep/source", ...defaultClientConditions] },
  build: {
    target: "es2023",
    modulePreload: { polyfill: false },
    // A font or a picture inside a style would need `data:` in the policy.
    assetsInlineLimit: 0,
    rollupOptions: { input: pages },
  },
  worker: { format: "es" },
  preview: { headers: policy },
  plugins: [
    digitsAsset(),
    {
      name: "content-security-policy",
      apply: "build",
      transformIndexHtml: () => [
        {
          tag: "meta",
          attrs: { "http-equiv": "Content-Security-Policy", content: contentSecurityPolicy },
          injectTo: "head-prepend",
        },
      ],
    },
  ],
};

export default config;
