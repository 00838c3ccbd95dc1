// The entry of further functions, which most programs do without: creation, sorting, sampling, windows of images.
export * from "./ops/functional.js";
