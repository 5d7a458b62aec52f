export { GraphComponent, type GraphHost, type GraphState } from "./component";
export { ACTIONS, type Action, type GraphData } from "./model";
