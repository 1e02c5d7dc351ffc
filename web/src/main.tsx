// The first look: the style sheets, the theme, and the page's frame, which is in index.html. The rest is loaded after it.

import "@xyflow/react/dist/base.css";
import "uplot/dist/uPlot.min.css";
import "./ui/styles.css";

import { persistently } from "./core/persistently";

const theme = localStorage.getItem("tcplab-theme");
if (theme) document.documentElement.dataset.theme = theme;

void persistently(() => import("./ui/start"));
