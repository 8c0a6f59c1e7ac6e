import { mount } from "./app.mjs";

const place = document.getElementById("explorer");
mount(place, JSON.parse(document.getElementById("explorer-facts").textContent));
// A page that shows this one in a frame may make the frame as high, so that nothing scrolls in it.
if (parent !== window)
  new ResizeObserver(() => parent.postMessage({ nscHeight: Math.ceil(place.offsetHeight) }, "*")).observe(place);
