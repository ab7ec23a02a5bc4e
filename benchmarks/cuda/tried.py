import sys
import streams
from streams import S, at_once, each_stage

def all_of(*shapes): return [each_stage(s) for s in shapes]
N = dict(stream=False, kept=False)
TRIED = {
    "heat": all_of(S(256,32,4,3,lead=3,stream=False), S(512,16,4,2,lead=3,stream=False), S(256,32,4,3,lead=4,**N), S(128,32,4,3,lead=3,stream=False), S(256,32,4,3,stream=False)),
    "acoustic": all_of(S(128,24,2,2), S(128,24,2,2,**N), S(128,24,2,2,stream=False), S(128,24,2,2,kept=False), S(64,48,2,2,**N), S(64,32,2,3,**N), S(256,12,2,2,**N), S(256,16,2,1,**N), S(128,24,2,2,lead=4,**N), S(64,48,2,2,lead=4)),
    "box27": all_of(S(256,16,8,2,stream=False), S(128,32,4,2,stream=False), S(256,16,4,2,blocks=2,stream=False), S(512,8,8,2,stream=False), S(256,16,8,2,**N), S(256,8,8,2,stream=False), S(256,32,8,2,lead=3,stream=False), S(128,16,8,2,stream=False), S(128,32,8,2,stream=False), S(512,16,8,2,stream=False), S(256,16,8,2,lead=3,stream=False,blocks=2)),
    "yee_periodic": [at_once(s) for s in (S(260,8,1,1,lead=3,stream=False), S(260,8,1,1,stream=False), S(260,8,1,1,lead=3), S(132,16,1,1,lead=3,stream=False), S(132,16,1,1,stream=False), S(260,10,1,1,lead=3,stream=False), S(132,12,1,2,lead=3,stream=False), S(68,24,1,2,stream=False), S(132,12,1,2,**N), S(516,4,1,1,lead=3,stream=False), S(516,5,1,1,lead=3,stream=False))],
    "tti": [each_stage(a, b) for a, b in ((S(64,32,2,1), S(64,16,1,1)), (S(64,32,2,1,**N), S(64,16,1,1,**N)), (S(64,24,2,2,**N), S(32,40,1,1,**N)), (S(64,24,2,2), S(32,32,1,1)), (S(64,32,2,1,stream=False), S(32,40,1,1)), (S(128,16,2,1,**N), S(64,16,1,1,lead=4)), (S(64,28,2,1), S(32,36,1,1)), (S(128,16,2,1), S(32,40,1,1,stream=False)))],
    "yee": [at_once(s) for s in (S(260,8,1,1,lead=3,stream=False), S(132,16,1,1,lead=3,stream=False), S(132,12,1,1,lead=3,stream=False))],
    "tti_one_stage": all_of(S(64,16,1,1), S(32,16,1,1), S(32,16,1,1,**N)),
}
